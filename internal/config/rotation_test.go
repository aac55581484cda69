package config_test

import (
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
)

func TestConfig_LogRotation(t *testing.T) {
	for _, row := range []struct {
		name, json, outputs string
		want                config.LogRotation
		fault               string
	}{
		{"the default", "", "a.log", config.LogRotation{MaxSizeMB: 100}, ""},
		{"all of it", `{"maxsize": 5, "maxage": 2, "maxbackups": 3, "localtime": true, "compress": true}`, "stderr,a.log",
			config.LogRotation{MaxSizeMB: 5, MaxAgeDays: 2, MaxBackups: 3, LocalTime: true, Compress: true}, ""},
		{"no size", `{"maxage": 1}`, "a.log", config.LogRotation{MaxSizeMB: 100, MaxAgeDays: 1}, ""},
		{"no file", "", "stderr", config.LogRotation{}, "--enable-log-rotation needs a file among --log-outputs"},
		{"no JSON", "100", "a.log", config.LogRotation{}, "--log-rotation-config-json: json: cannot unmarshal"},
		{"half of it", `{"maxsize": 5`, "a.log", config.LogRotation{}, "--log-rotation-config-json: unexpected EOF"},
		{"a mistyped word", `{"maxsiez": 5}`, "a.log", config.LogRotation{}, `unknown field "maxsiez"`},
		{"a negative age", `{"maxage": -1}`, "a.log", config.LogRotation{}, "must not be negative"},
	} {
		t.Run(row.name, func(t *testing.T) {
			args := []string{"--enable-log-rotation", "--log-outputs=" + row.outputs}
			if row.json != "" {
				args = append(args, "--log-rotation-config-json="+row.json)
			}
			c, err := config.Load(args, nil)
			if row.fault != "" {
				if err == nil || !strings.Contains(err.Error(), row.fault) {
					t.Errorf("got %v, want %s", err, row.fault)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.LogRotation(); err != nil || *got != row.want {
				t.Errorf("got %+v, %v; want %+v", got, err, row.want)
			}
		})
	}
	if c, err := config.Load([]string{"--log-rotation-config-json=nonsense"}, nil); err != nil {
		t.Errorf("without rotation: got %v", err)
	} else if got, err := c.LogRotation(); got != nil || err != nil {
		t.Errorf("without rotation: got %v, %v", got, err)
	}
}
