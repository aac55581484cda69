package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

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
				if strings.Contains(line, "is forbidden: User") {
					return fmt.Errorf("the operator lacks a right: %s", line)
				}
			}
		}
	}
	return nil
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
