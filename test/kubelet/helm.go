package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// refusalTime is how long an API server may refuse rights that it has not read yet, after it started.
const refusalTime = 10 * time.Second

// refusals fails if logs of the operators in a namespace say that they lack a right.
func (g *ground) refusals(namespace string) error {
	for _, n := range g.nodes {
		logs, err := filepath.Glob(n.Log(namespace, "*", "*"))
		if err != nil {
			return err
		}
		for _, path := range logs {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				if g.refused(line) {
					return fmt.Errorf("the operator lacks a right: %s", line)
				}
			}
		}
	}
	return nil
}

// refused tells whether a line of a log says that a right lacks, and not just after the API server started.
func (g *ground) refused(line string) bool {
	if !strings.Contains(line, "is forbidden: User") {
		return false
	}
	var entry struct {
		TS time.Time `json:"ts"`
	}
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		return true
	}
	return entry.TS.Sub(g.plane.Started()) > refusalTime || entry.TS.Before(g.plane.Started().Add(-time.Second))
}

// helmMissing says what a chart needs that was not given.
func (g *ground) helmMissing(name string) string {
	switch _, err := os.Stat(g.charts + "/" + name + "/Chart.yaml"); {
	case g.helmPath == "":
		return "-helm PATH"
	case err != nil:
		return "the chart " + name + " in -charts DIR"
	}
	return ""
}

// helm runs Helm.
func (g *ground) helm(ctx context.Context, arguments ...string) error {
	command := exec.CommandContext(ctx, g.helmPath, arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+g.plane.Kubeconfig, "HOME="+g.directory)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", arguments[0], err, out)
	}
	return nil
}
