package server

import (
	"errors"
	"strings"
	"testing"

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
