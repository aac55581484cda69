package main

import (
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/test/kubelet/node"
)

// Ensure that scenarios of a former release are told as not run where the clone lacks its tag, and no others are; and that no two
// scenarios have one name.
func TestScenarios_missing(t *testing.T) {
	bare := &ground{images: node.Images{}}
	with := &ground{images: node.Images{"quorate:" + formerBuild: node.Quorate("/quorate")}}
	names, missing := map[string]bool{}, 0
	for _, s := range scenarios(time.Minute) {
		if names[s.title()] {
			t.Errorf("%s is there twice", s.title())
		}
		names[s.title()] = true
		why := s.subject.missing(bare)
		if strings.Contains(why, "v1.0.0") != strings.Contains(s.name, formerBuild) || strings.Contains(s.subject.missing(with), "v1.0.0") {
			t.Errorf("%s: without the release %q, with it %q", s.title(), why, s.subject.missing(with))
		}
		if strings.Contains(why, "v1.0.0") {
			missing++
			if line := (row{name: s.title(), missing: why}).String(); !strings.Contains(line, "| not run, for want of release 1.0.0: ") {
				t.Error(line)
			}
		}
	}
	if missing != 4 {
		t.Errorf("%d scenarios want the former release", missing)
	}
}
