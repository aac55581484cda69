package auth_test

import (
	"errors"
	"math"
	"testing"

	"github.com/quorate/quorate/internal/auth"
)

// Ensure that no cluster begins with a revision after which there is none: its store could not be opened again.
func TestImported_lastRevision(t *testing.T) {
	if _, err := auth.Imported(false, math.MaxUint64, nil, nil); !errors.Is(err, auth.ErrCorruptRow) {
		t.Errorf("got %v", err)
	}
}
