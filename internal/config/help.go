package config

import (
	"fmt"
	"io"
	"strings"
)

const (
	helpColumn = 40  // where the texts begin
	helpWidth  = 116 // where they are wrapped
)

// WriteHelp prints all flags, grouped, with their defaults.
func WriteHelp(w io.Writer) {
	fmt.Fprintln(w, "Configuration:")
	writeFlag(w, "config-file", "FILE", "YAML file that replaces all flags and ETCD_ variables.")
	writeFlag(w, "version", "", "Print the version and exit.")
	writeFlag(w, "help", "", "Print this text and exit.")
	for _, g := range groups {
		fmt.Fprintf(w, "\n%s:\n", g.title)
		if collective := collectiveReason(g); collective != "" {
			writeNames(w, g, collective)
			continue
		}
		for i := range g.settings {
			if s := &g.settings[i]; s.effect == inEffect || s.help != "" {
				writeFlag(w, s.name, s.arg, describe(s))
			} else if s.effect == refuse {
				writeFlag(w, s.name, s.arg, "Refused: "+s.reason+".")
			} else {
				writeFlag(w, s.name, s.arg, "Without effect: "+s.reason+".")
			}
		}
	}
}

// collectiveReason returns the text for groups of flags that are all without effect, or all refused.
func collectiveReason(g group) string {
	for i := range g.settings {
		if g.settings[i].effect == inEffect {
			return ""
		}
	}
	if g.settings[0].effect == idle {
		return "etcd's flags that have no meaning here; a value other than etcd's default is logged once."
	}
	return sentence(g.settings[0].reason) + " These flags are refused:"
}

func writeNames(w io.Writer, g group, reason string) {
	for _, line := range wrap(reason, helpWidth-2) {
		fmt.Fprintf(w, "  %s\n", line)
	}
	var names []string
	for i := range g.settings {
		names = append(names, "--"+g.settings[i].name)
	}
	for _, line := range wrap(strings.Join(names, " "), helpWidth-4) {
		fmt.Fprintf(w, "    %s\n", line)
	}
}

func describe(s *setting) string {
	switch {
	case s.shown != "":
		return s.help + " (default: " + s.shown + ")"
	case s.def == "" || s.def == "false":
		return s.help
	default:
		return s.help + " (default " + s.def + ")"
	}
}

func sentence(reason string) string {
	return strings.ToUpper(reason[:1]) + reason[1:] + "."
}

func writeFlag(w io.Writer, name, arg, text string) {
	left := "  --" + name
	if arg != "" {
		left += " " + arg
	}
	lines := wrap(text, helpWidth-helpColumn)
	if len(left) > helpColumn-2 {
		fmt.Fprintln(w, left)
		left = ""
	}
	for _, line := range lines {
		fmt.Fprintf(w, "%-*s%s\n", helpColumn, left, line)
		left = ""
	}
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) > width:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
