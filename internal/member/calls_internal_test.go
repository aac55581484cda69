package member

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/peercall"
	"github.com/quorate/quorate/internal/membership"
)

// told returns the error that a caller sees when a member answers with err, and the size of the answer in bytes.
func told(t *testing.T, err error) (error, int) {
	t.Helper()
	table := peercall.NewTable(faults, nil)
	peercall.Serve(table, &methodRenew, func(context.Context, []kv.LeaseID) ([]lease.Renewal, error) {
		return []lease.Renewal{{TTLSeconds: 3600}}, err
	})
	question, failed := peercall.Encode(&methodRenew, consensus.ConfigID{}, []kv.LeaseID{1 << 62})
	if failed != nil {
		t.Fatal(failed)
	}
	answer, _, failed := table.Answer(t.Context(), methodRenew.Name, question)
	if failed != nil {
		return failed, 0
	}
	_, failed = peercall.Decode(faults, &methodRenew, answer)
	return failed, len(question) + len(answer)
}

// Ensure that errors keep their type between members, and that no two have the same code.
func TestFaults(t *testing.T) {
	seen := map[byte]bool{}
	for _, fault := range faults {
		if seen[fault.Code] || fault.Code == 0 {
			t.Errorf("two errors have the code %d", fault.Code)
		}
		seen[fault.Code] = true
	}
	for _, sentinel := range []error{
		membership.ErrJobNotFound, membership.ErrTooManyJobs, membership.ErrAlreadyStarted, ErrTooLarge, ErrNotLeader,
		ErrNoLeader, kv.ErrLeaseNotFound, fmt.Errorf("%w: it was cancelled", membership.ErrJobFailed),
	} {
		if got, _ := told(t, sentinel); got == nil || got.Error() != sentinel.Error() ||
			!errors.Is(got, sentinel) && !errors.Is(got, errors.Unwrap(sentinel)) {
			t.Errorf("%v became %v", sentinel, got)
		}
	}
	var blocked *membership.BlockedError
	var refused *membership.RefusedError
	var spec *membership.SpecError
	var address *membership.AddressError
	got, _ := told(t, &membership.BlockedError{Plan: membership.Plan{Blockers: []string{"a", "b"}}})
	if !errors.As(got, &blocked) || len(blocked.Plan.Blockers) != 2 {
		t.Errorf("a blocked change became %v", got)
	}
	want := membership.RefusedError{
		Reason: consensus.ReasonStaleConfig, Config: consensus.ConfigID{Index: 9, Term: 2, Stage: 1}, Why: "job 7 is done",
	}
	if got, _ := told(t, &want); !errors.As(got, &refused) || *refused != want {
		t.Errorf("a refused change became %v", got)
	}
	if got, _ := told(t, &membership.SpecError{Text: "no"}); !errors.As(got, &spec) || spec.Text != "no" {
		t.Errorf("a senseless change became %v", got)
	}
	if got, _ := told(t, &membership.AddressError{Text: "no"}); !errors.As(got, &address) || address.Text != "no" {
		t.Errorf("a wrong address became %v", got)
	}
}

// Ensure that the keep-alive of a lease through a follower costs only a few bytes in each direction.
func TestMethodRenew_size(t *testing.T) {
	if err, bytes := told(t, nil); err != nil || bytes > 16 {
		t.Errorf("%d bytes, %v", bytes, err)
	}
}

// Ensure that the leader's answer for each lease keeps its meaning and its place.
func TestRenewalsCodec(t *testing.T) {
	want := []lease.Renewal{
		{TTLSeconds: 10}, {Err: kv.ErrLeaseNotFound}, {Err: lease.ErrExpired}, {TTLSeconds: kv.MaxLeaseTTLSeconds}, {TTLSeconds: -1},
	}
	body, err := renewalsCodec.Append(nil, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := renewalsCodec.Decode(body); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	newer, err := renewalsCodec.Decode([]byte{77, 0})
	if err != nil || len(newer) != 1 || !errors.Is(newer[0].Err, lease.ErrExpired) {
		t.Errorf("an outcome of a newer leader: got %v, %v; want one after which the caller asks again", newer, err)
	}
	if _, err := leaseIDsCodec.Decode(make([]byte, expiry.MaxBatchLeases+1)); err == nil {
		t.Error("a question about more leases than a batch may have is accepted")
	}
}
