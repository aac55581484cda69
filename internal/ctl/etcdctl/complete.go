package etcdctl

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// Complete returns what a shell may offer for the last word of a line, which is incomplete.
func Complete(words []string, last string) ([]string, cobra.ShellCompDirective) {
	root := newRoot("etcdctl")
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(append(append([]string{cobra.ShellCompRequestCmd}, words...), last))
	if root.Execute() != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var offered []string
	for line := range strings.Lines(out.String()) {
		line = strings.TrimSuffix(line, "\n")
		if number, ends := strings.CutPrefix(line, ":"); ends {
			directive, _ := strconv.Atoi(number)
			return offered, cobra.ShellCompDirective(directive)
		}
		offered = append(offered, line)
	}
	return offered, cobra.ShellCompDirectiveDefault
}
