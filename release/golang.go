package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// golang is the go command with an environment in which nothing enters a build that is not in the commit.
type golang struct {
	environ []string
	version string // go1.26.8
}

// settings are what a build may take from the user: where modules and the cache are, and whom to ask for modules.
var settings = []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOINSECURE",
	"GOAUTH", "GOPATH", "GOTMPDIR", "GOVCS"}

// newGolang asks the go command for its settings. A toolchain that is named is used, and downloaded by the module proxy if
// it must be; without one it is the toolchain that is installed.
func newGolang(ctx context.Context, toolchain string) (*golang, error) {
	if toolchain == "" {
		toolchain = "local"
	}
	c := exec.CommandContext(ctx, "go", append([]string{"env", "-json", "GOVERSION"}, settings...)...)
	c.Env = append(without(os.Environ(), "GOTOOLCHAIN=", "GOFLAGS="), "GOTOOLCHAIN="+toolchain)
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("the go command cannot use the toolchain %s: %s", toolchain, firstLine(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	set := map[string]string{}
	if err := json.Unmarshal(out, &set); err != nil {
		return nil, err
	}
	foreign := []string{"GO", "GIT_", "CGO_", "CC=", "CXX=", "PKG_CONFIG="}
	g := &golang{version: set["GOVERSION"], environ: append(without(os.Environ(), foreign...),
		"GOENV=off", "GOWORK=off", "GOFLAGS=-mod=readonly", "GOTOOLCHAIN="+toolchain,
		"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory",
		"GIT_CONFIG_VALUE_0=*", "LC_ALL=C", "TZ=UTC")}
	for _, name := range settings {
		if set[name] != "" {
			g.environ = append(g.environ, name+"="+set[name])
		}
	}
	return g, nil
}

// run runs the go command in a directory, for a target if one is given.
func (g *golang) run(ctx context.Context, dir string, target Target, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir, c.Env = dir, g.environ
	if target != (Target{}) {
		c.Env = append(c.Env[:len(c.Env):len(c.Env)], "GOOS="+target.OS, "GOARCH="+target.Arch)
	}
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(said.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
