"""How Sphinx makes the site. Where its pages come from: tools/docs_site; `make docs` runs both."""

from actiongap import __version__

project = "actiongap"
author = copyright = "The actiongap developers"
version = release = __version__
html_title = f"actiongap {__version__}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "tools.docs_site.docstrings"]
exclude_patterns = ["extra"]
highlight_language = "text"
# Three dots and two dashes are code more often than not.
smartquotes = False

# A heading is a place that a link can lead to.
myst_heading_anchors = 4

autodoc_default_options = {"members": True, "undoc-members": True, "no-value": True}
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_mock_imports = ["stable_baselines3", "torch"]
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["style"]
html_css_files = ["site.css"]
html_extra_path = ["extra"]
html_copy_source = False
html_show_sphinx = False
