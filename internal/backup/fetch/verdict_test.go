package fetch_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/storage/objects"
)

// Ensure that damage is a verdict, and that damage which was found before something else ended a restore is none.
func TestVerdict(t *testing.T) {
	damage := &fetch.DamageError{Name: "log/1", Err: fmt.Errorf("%w: %w", backup.ErrDamaged, errors.New("frame"))}
	unreachable := &backup.UnreachableError{Why: "no base"}
	mine := errors.New("mine")
	for _, row := range []struct {
		err   error
		parts int
		want  bool
	}{
		{nil, 0, false}, {objects.ErrBusy, 1, false}, {damage, 1, true}, {unreachable, 1, true}, {mine, 1, true},
		{fmt.Errorf("base: %w", damage), 1, true},
		{errors.Join(damage, unreachable), 2, true},
		{errors.Join(damage, nil, errors.Join(mine, unreachable)), 3, true},
		{errors.Join(damage, objects.ErrBusy), 2, false},
		{fmt.Errorf("the proof: %w", errors.Join(errors.Join(damage, damage), fmt.Errorf("get: %w", objects.ErrBusy))), 3, false},
		{errors.Join(damage, &backup.TooLargeError{Bytes: 2, Most: 1}), 2, false},
	} {
		got := fetch.Verdict(row.err, func(err error) bool { return err == mine })
		if parts := fetch.Parts(row.err); got != row.want || len(parts) != row.parts {
			t.Errorf("%v: %v, %d parts", row.err, got, len(parts))
		}
	}
}
