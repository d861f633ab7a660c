# SPDX-License-Identifier: BSD-3-Clause
"""Files by name and content: in settings of a header, in chains."""

from __future__ import annotations

from planebench.model.text import (
    digests_of,
    digests_text,
    file_names,
    named_digests,
    names_by_content,
    without_folders,
)

A, B, C = "0" * 16, "1" * 16, "2" * 16


def test_settings_are_read_as_they_are_written() -> None:
    files = {"/r/my.rules": A, "/a b/x, y 0123456789abcdef.txt": B}
    assert digests_of({"chain_files": digests_text(files), "traffic_files": f"/t/ips.txt {C}"}) == {
        **files,
        "/t/ips.txt": C,
    }
    assert digests_of({"wire": "virtio"}) == digests_of({"chain_files": ""}) == {}


def test_two_contents_of_one_name_stay_two() -> None:
    assert file_names({"/1/my.rules": A, "/2/my.rules": B, "/3/ips.txt": C}) == {
        "/1/my.rules": "my.rules@00000000",
        "/2/my.rules": "my.rules@11111111",
        "/3/ips.txt": "ips.txt",
    }
    assert named_digests({"chain_files": f"/1/my.rules {A}, /2/my.rules {A}"}) == {"my.rules": A}


def test_a_chain_has_names_in_the_place_of_paths() -> None:
    settings = {"chain_files": digests_text({"/r/my.rules": A, "/r/my.rules.old": B, "/c:d/r.txt": C})}
    chain = 'firewall:rules=/r/my.rules,firewall:rules=/r/my.rules.old,l3fwd:routes="/c:d/r.txt"'
    assert without_folders(chain, settings) == "firewall:rules=my.rules,firewall:rules=my.rules.old,l3fwd:routes=r.txt"
    assert without_folders(chain, {}) == chain


def test_equal_files_have_one_name_unless_it_is_that_of_another() -> None:
    known: dict[str, str] = {}
    assert names_by_content({"chain_files": f"/1/a {A}, /1/b {A}"}, known) == {"/1/a": "a", "/1/b": "b"}
    assert names_by_content({"chain_files": f"/2/c {A}"}, known) == {"/2/c": "a"}
    assert names_by_content({"chain_files": f"/3/a {B}, /3/c {A}"}, known) == {"/3/a": "a", "/3/c": "c"}
