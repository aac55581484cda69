package config_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

func TestLoad_memory(t *testing.T) {
	for _, tc := range []struct {
		text string
		want config.Memory
		says string
	}{
		{"auto", config.Memory{}, "auto"},
		{"512MiB", config.Memory{Bytes: 512 << 20}, "512MiB"},
		{"0.5 GiB", config.Memory{Bytes: 512 << 20}, "512MiB"},
		{"4g", config.Memory{Bytes: 4e9}, "3906250KiB"},
		{"300MB", config.Memory{Bytes: 300e6}, "300000000"},
		{"8796093022208", config.Memory{Bytes: 8 << 40}, "8192GiB"},
		{"50%", config.Memory{Percent: 50}, "50%"},
		{" 12.5 %", config.Memory{Percent: 12.5}, "12.5%"},
		{"128MiB", config.Memory{Bytes: 128 << 20}, "128MiB"},
	} {
		c := mustLoad(t, []string{"--memory=" + tc.text})
		if got := c.Limits.Memory; got != tc.want || got.String() != tc.says {
			t.Errorf("--memory=%s: got %+v, which says %q, want %+v and %q", tc.text, got, got, tc.want, tc.says)
		}
	}
	if c := mustLoad(t, nil, "ETCD_MEMORY=1GiB"); c.Limits.Memory.Bytes != 1<<30 {
		t.Errorf("from the environment: got %+v", c.Limits.Memory)
	}
	for text, want := range map[string]string{
		"127MiB": "must be at least 128MiB", "0": "must be at least 128MiB", "-1": "must be a size", "many": "must be a size",
		"0%": "more than 0%", "101%": "at most 100%", "NaN%": "must be a size", "x%": "must be a size",
		"1e30": "must be a size", "16EiB": "must be a size",
	} {
		if _, err := load(t, []string{"--memory=" + text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("--memory=%s: got %v, want %q", text, err, want)
		}
	}
}
