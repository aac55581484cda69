package observe

import (
	"testing"

	"github.com/quorate/quorate/internal/audit/trail"
)

// Ensure that each kind of output of the audit is told by what it is, and a file by no name that looks like another kind.
func TestSinkKind(t *testing.T) {
	for kind, s := range map[string]trail.SinkStatus{"file": {Name: "otlp://a:1", File: true}, "journal": {Name: "journal"},
		"syslog": {Name: "syslog"}, "OTLP collector": {Name: "otlps://collector:4317"}} {
		if got := sinkKind(&s); got != kind {
			t.Errorf("%+v: %q", s, got)
		}
	}
}
