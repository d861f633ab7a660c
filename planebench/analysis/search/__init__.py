# SPDX-License-Identifier: BSD-3-Clause
"""Searches as pure code over ``measure(ask) -> Trial``: R+, NDR, PDR, RFC 2544, BSwLV, back-to-back."""
