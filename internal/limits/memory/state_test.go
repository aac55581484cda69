package memory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/limits/memory"
)

// Ensure that a process with as much memory as is needed starts, and one with a MiB less does not.
func TestNeeded(t *testing.T) {
	for _, held := range []int64{0, 2 * mib, 600 * mib, 3 << 30} {
		needed := memory.Needed(held)
		if err := memory.CheckLeases(1, held, memory.Divide(needed).Starts()); err != nil {
			t.Errorf("%d with %d: %v", held, needed, err)
		}
		less := memory.Divide(needed - mib).Starts()
		if err := memory.CheckLeases(1, held, less); needed > memory.MinLimit && err == nil {
			t.Errorf("%d needs less than %d", held, needed)
		}
	}
}

// Ensure that a refusal says which memory is needed, and for what; and that no bound is none.
func TestCheckLeases(t *testing.T) {
	err := memory.CheckLeases(40_960, 10*mib, memory.Divide(memory.MinLimit).Starts())
	var refused *memory.LeasesError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "--memory=") || !strings.Contains(err.Error(), "the leases (40960) take") {
		t.Errorf("got %v", err)
	}
	if err := memory.CheckLeases(1, 10*mib, 0); err != nil {
		t.Error(err)
	}
}
