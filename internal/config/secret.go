package config

import (
	"slices"
	"strings"
)

// blank stands for a secret wherever settings are shown.
const blank = "***"

// toldByCommands are flags of commands whose values are secrets, or hold one.
var toldByCommands = []string{"password", "user", "new-user-password"}

// BlankSecrets returns a command line without its secrets. Every client that may read metrics and variables of the process
// sees the rest.
func BlankSecrets(args []string) []string {
	shown := slices.Clone(args)
	for i := range shown {
		name, dashed := strings.CutPrefix(shown[i], "-")
		name, _ = strings.CutPrefix(name, "-")
		name, _, given := strings.Cut(name, "=")
		if s := find(name); !dashed || !slices.Contains(toldByCommands, name) && (s == nil || !s.secret) {
			continue
		}
		if given {
			shown[i] = "--" + name + "=" + blank
		} else if i+1 < len(shown) {
			shown[i+1] = blank
		}
	}
	return shown
}
