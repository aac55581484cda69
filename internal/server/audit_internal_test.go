package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that no rejection of a head passes for success, and that a chain of which the cluster knows more is told so.
func TestNotPublished(t *testing.T) {
	if err := notPublished(nil); err != nil {
		t.Errorf("a head that was taken: %v", err)
	}
	for _, rejection := range []error{kv.ErrBadCommand, kv.ErrHeadBehind, kv.ErrTooManyHeads, kv.ErrCorrupt} {
		if err := notPublished(rejection); !errors.Is(err, rejection) {
			t.Errorf("%v: %v", rejection, err)
		}
	}
	if err := notPublished(kv.ErrHeadBehind); !strings.Contains(err.Error(), "quorate audit verify") {
		t.Errorf("says not what to do: %v", err)
	}
}

// Ensure that a start names the flag and the file if an output of records cannot be opened.
func TestOpenRecords_fails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(file, "audit.log") // no directory is there, and none can be made
	_, _, err := openRecords(name, &config.LogRotation{})
	if err == nil || !strings.Contains(err.Error(), "--audit-log "+name) {
		t.Errorf("%v", err)
	}
}
