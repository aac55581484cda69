package cluster

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os/exec"
	"strings"
)

// Version is what the program says of itself, and the commit of which it was built, if it knows.
func Version(ctx context.Context, s Server) (string, error) {
	said, err := exec.CommandContext(ctx, s.Path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", s.Path, err)
	}
	first, _, _ := strings.Cut(string(said), "\n")
	_, version, _ := strings.Cut(first, ": ")
	info, err := buildinfo.ReadFile(s.Path)
	if err != nil {
		return version, nil
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			version += ", commit " + setting.Value[:min(len(setting.Value), 7)]
		}
	}
	return version, nil
}
