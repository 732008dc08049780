# SPDX-License-Identifier: GPL-3.0-only
"""The five games of MinAtar (Young & Tian 2019), exact to MinAtar 1.0.15. This folder is GPL-3, as the original is."""
