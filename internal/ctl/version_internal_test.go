package ctl

import (
	"bytes"
	"encoding/json"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that programs can read the version, and that people read what they read before.
func TestVersion_output(t *testing.T) {
	run := func(args ...string) (status int, out, errs string) {
		var stdout, stderr bytes.Buffer
		status = Run(t.Context(), append([]string{"version"}, args...), command.Streams{Out: &stdout, Err: &stderr})
		return status, stdout.String(), stderr.String()
	}
	var text bytes.Buffer
	config.WriteVersion(&text)
	if status, out, _ := run(); status != 0 || out != text.String() {
		t.Errorf("got %d %q, want %q", status, out, text.String())
	}
	status, out, _ := run("-o", "json")
	var got versionReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || strings.Count(out, "\n") != 1 {
		t.Fatalf("got %d %q: %v", status, out, err)
	}
	if got.Version != config.Build() || got.Commit != config.Revision() || got.Go != runtime.Version() ||
		got.Level != (levelReport{level.First, level.Own, level.Own}) || got.Etcd != config.EtcdVersion {
		t.Errorf("got %+v", got)
	}
	if status, _, errs := run("-o", "yaml"); status != command.StatusUsage || !strings.Contains(errs, "write text or json") {
		t.Errorf("got %d %q", status, errs)
	}
}

// Ensure that the modules are those of the program, and that a replacement stands where it was built in.
func TestReportVersion_modules(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: "a.example/one", Version: "v1.0.0", Sum: "h1:x"},
		{Path: "a.example/two", Version: "v1.0.0", Replace: &debug.Module{Path: "b.example/two", Version: "v2.0.0", Sum: "h1:y"}},
	}}
	want := []moduleReport{{"a.example/one", "v1.0.0", "h1:x"}, {"b.example/two", "v2.0.0", "h1:y"}}
	if got := reportVersion(info, true).Modules; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := reportVersion(nil, false).Modules; got == nil || len(got) != 0 {
		t.Errorf("without a record: got %v, want an empty list", got)
	}
}
