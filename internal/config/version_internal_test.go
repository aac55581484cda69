package config

import (
	"runtime/debug"
	"strings"
	"testing"
)

// Ensure that two builds of one version have different names, in one word, and that a release has its version alone.
func TestBuildOf(t *testing.T) {
	set := func(pairs ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{}
		for i := 0; i < len(pairs); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: pairs[i], Value: pairs[i+1]})
		}
		return info
	}
	commit := []string{"vcs.revision", "3f1448cbc1f2aaaaaaaaaaaa", "vcs.time", "2026-11-24T23:59:00-05:00", "vcs.modified", "false"}
	for _, tc := range []struct {
		version string
		info    *debug.BuildInfo
		want    string
	}{
		{"1.0.0-dev", set(commit...), "1.0.0-dev+20261125.3f1448cbc1f2"},
		{"1.0.0-dev", set(append(commit[:4:4], "vcs.modified", "true")...), "1.0.0-dev+20261125.3f1448cbc1f2-dirty"},
		{"1.0.0-dev", set(commit[:2]...), "1.0.0-dev+3f1448cbc1f2"},
		{"1.0.0-dev", set(), "1.0.0-dev"},
		{"1.0.0-dev", nil, "1.0.0-dev"},
		{"1.1.0", set(commit...), "1.1.0"},
	} {
		got := buildOf(tc.version, sourceOf(tc.info, tc.info != nil))
		if got != tc.want || strings.Contains(got, " ") {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}
