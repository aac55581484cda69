package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// LogRotation says when a file of the log is put aside, and what becomes of it. See package logging.
type LogRotation struct {
	MaxSizeMB, MaxAgeDays, MaxBackups int
	LocalTime, Compress               bool
}

// defaultMaxSizeMB is the size of a file if --log-rotation-config-json has none, or 0.
const defaultMaxSizeMB = 100

// LogRotation returns what --enable-log-rotation and --log-rotation-config-json ask for; nil for no rotation.
func (c *Config) LogRotation() (*LogRotation, error) {
	if !c.Monitoring.EnableLogRotation {
		return nil, nil
	}
	r, err := parseRotation("log-rotation-config-json", c.Monitoring.LogRotationJSON)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Monitoring.LogOutputs, isLogFile) {
		return nil, errors.New("--enable-log-rotation needs a file among --log-outputs")
	}
	return r, nil
}

// AuditRotation returns what --audit-log-rotation-json asks for.
func (c *Config) AuditRotation() (*LogRotation, error) {
	return parseRotation("audit-log-rotation-json", c.Audit.RotationJSON)
}

func parseRotation(flag, text string) (*LogRotation, error) {
	var given struct {
		Filename                    string // in the settings of etcd's library; --log-outputs names the files
		MaxSize, MaxAge, MaxBackups int
		LocalTime, Compress         bool
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&given); err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	if given.MaxSize < 0 || given.MaxAge < 0 || given.MaxBackups < 0 {
		return nil, fmt.Errorf("--%s: maxsize, maxage and maxbackups must not be negative", flag)
	}
	if given.MaxSize == 0 {
		given.MaxSize = defaultMaxSizeMB
	}
	return &LogRotation{MaxSizeMB: given.MaxSize, MaxAgeDays: given.MaxAge, MaxBackups: given.MaxBackups,
		LocalTime: given.LocalTime, Compress: given.Compress}, nil
}

func isLogFile(output string) bool {
	return !slices.Contains([]string{"default", "stderr", "stdout", "systemd/journal"}, output)
}
