package memory_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/memory"
)

// Ensure that a process with as much memory as is needed starts, and one with a MiB less does not.
func TestNeeded(t *testing.T) {
	for _, held := range []memory.State{
		{}, {Leases: 2 * mib}, {Leases: 600 * mib, Users: 1}, {Leases: 3 << 30}, {Users: 64 * mib, Sessions: 64 * mib},
	} {
		needed := memory.Needed(held)
		if err := memory.Check(held, memory.Divide(needed).Starts(), 1); err != nil {
			t.Errorf("%+v with %d: %v", held, needed, err)
		}
		less := memory.Divide(needed - mib).Starts()
		if err := memory.Check(held, less, 1); needed > memory.MinLimit && err == nil {
			t.Errorf("%+v needs less than %d", held, needed)
		}
	}
}

// Ensure that a refusal says which memory is needed, and for what; and that no bound is none.
func TestCheck(t *testing.T) {
	held := memory.State{Leases: 10 * mib, Users: mib}
	err := memory.Check(held, memory.Divide(memory.MinLimit).Starts(), 40_960)
	var refused *memory.StateError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	for _, want := range []string{"--memory=", "40960 leases"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
	// More memory would not help a process that holds more users or sessions than their shares can ever be.
	if err := memory.Check(memory.State{Users: 64 * mib, Sessions: 64 * mib}, memory.Divide(memory.MinLimit).Starts(), 0); err != nil {
		t.Errorf("users and sessions: %v", err)
	}
	if err := memory.Check(held, memory.State{}, 1); err != nil {
		t.Error(err)
	}
}
