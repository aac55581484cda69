package tidy_test

import (
	"strings"
	"testing"
)

// TestThreatModel walks the tables of docs/threat-model.md: the last cell of each row names tests that exist.
func TestThreatModel(t *testing.T) { check(t, checkThreatModel) }

func checkThreatModel(r *tree) []string {
	var p report
	names, _ := symbols(r)
	rows := 0
	for _, line := range strings.Split(r.read("docs/threat-model.md"), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || last == "test" {
			continue
		}
		rows++
		found := code.FindAllStringSubmatch(last, -1)
		if len(found) == 0 {
			p.addf("docs/threat-model.md: no test in: %s", line)
		}
		for _, name := range found {
			if !names[name[1]] {
				p.addf("docs/threat-model.md: test `%s` is not in the tree", name[1])
			}
		}
	}
	if rows == 0 {
		p.addf("docs/threat-model.md: no rows")
	}
	return p
}
