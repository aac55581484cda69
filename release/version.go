package main

import (
	"fmt"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// Version is that of a release, v1.0.0, or that of a commit that is none: v0.0.0-dev.20261129173303.g0b2228f3aaaa.
type Version string

// parseVersion takes what Go, Debian, RPM and registries all take: a full semantic version without build metadata.
func parseVersion(text string) (Version, error) {
	switch {
	case !semver.IsValid(text) || semver.Canonical(text) != text || module.IsPseudoVersion(text):
		return "", fmt.Errorf("--version %s: write a semantic version with a v and three numbers, such as v1.0.0 or "+
			"v1.1.0-rc.1", text)
	case semver.Major(text) != "v0" && semver.Major(text) != "v1":
		return "", fmt.Errorf("--version %s: the go command writes versions from v2 on only into a module whose path ends "+
			"in /%s", text, semver.Major(text))
	}
	return Version(text), nil
}

const beforeAll = "v0.0.0-dev."

// snapshotOf is the version of a commit that is no release: before all releases, and later ones after earlier ones.
func snapshotOf(commit string, at time.Time) Version {
	return Version(beforeAll + at.UTC().Format("20060102150405") + ".g" + commit[:12])
}

// Tag is the tag that the go command shall find; empty for a commit that is no release.
func (v Version) Tag() string {
	if strings.HasPrefix(string(v), beforeAll) {
		return ""
	}
	return string(v)
}

// Number is the version as the product and packages have it, without the v.
func (v Version) Number() string { return strings.TrimPrefix(string(v), "v") }

// Packaged is the number as dpkg and rpm order it: one of before a release is below it.
func (v Version) Packaged() string { return strings.Replace(v.Number(), "-", "~", 1) }
