package etcderr

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
)

// isEtcds tells whether a client of etcd knows the text of err.
func isEtcds(err error) bool {
	_, known := rpctypes.Error(err).(rpctypes.EtcdError)
	return known
}

func TestErrors_table_isEtcds(t *testing.T) {
	for _, row := range wireErrors {
		wrapped := fmt.Errorf("apply: %w", row.from)
		if got := Wire(wrapped); got != row.to {
			t.Errorf("%v: got %v, want %v", row.from, got, row.to)
		}
		if !isEtcds(row.to) {
			t.Errorf("%v: its text is not one that etcd's clients know", row.to)
		}
	}
}

func TestErrors_refusals_areMapped(t *testing.T) {
	for reason := consensus.ReasonNoLeader; reason <= consensus.ReasonAllCordoned; reason++ {
		got := Wire(fmt.Errorf("add: %w", &membership.RefusedError{Reason: reason}))
		if _, listed := refusals[reason]; !listed {
			t.Errorf("reason %d is not in the table", reason)
		}
		switch got {
		case errChangePending, errLastVoter, errStaleConfig, errProtocol, errTooLate, errNoChange, errAllCordoned:
			// etcd has no text for these.
		default:
			if !isEtcds(got) {
				t.Errorf("reason %d: %v is not one of etcd's errors", reason, got)
			}
		}
	}
}

func TestErrors_others(t *testing.T) {
	for _, row := range []struct {
		name string
		err  error
		code codes.Code
		text string
	}{
		{"the client went away", fmt.Errorf("read: %w", context.Canceled), codes.Canceled, "context canceled"},
		{"the client's time ran out", context.DeadlineExceeded, codes.DeadlineExceeded, "context deadline exceeded"},
		{"too many requests are Unknown", member.ErrTooManyRequests, codes.Unknown, "etcdserver: too many requests"},
		{"too few started are Unknown", ErrNotEnoughStarted, codes.Unknown,
			"etcdserver: re-configuration failed due to not enough started members"},
		{"a change beside another may be tried again", &membership.RefusedError{Reason: consensus.ReasonChangePending},
			codes.Unavailable, "etcdserver: another membership change is in progress"},
		{"a change of what is no longer so", &membership.RefusedError{Reason: consensus.ReasonStaleConfig},
			codes.FailedPrecondition,
			"etcdserver: the membership has changed since it was looked at, list the members and ask again"},
		{"a protocol that cannot", &membership.RefusedError{Reason: consensus.ReasonProtocol}, codes.FailedPrecondition,
			"etcdserver: this membership change cannot be made by the protocol that was asked for"},
		{"an abort that comes too late", &membership.RefusedError{Reason: consensus.ReasonTooLate}, codes.FailedPrecondition,
			"etcdserver: the membership change is decided and can no longer be undone"},
		{"a change of nothing", &membership.RefusedError{Reason: consensus.ReasonNoChange}, codes.FailedPrecondition,
			"etcdserver: there is nothing to change about the membership"},
		{"a cordon around all voters", &membership.RefusedError{Reason: consensus.ReasonAllCordoned}, codes.FailedPrecondition,
			"etcdserver: every voter would be cordoned, and somebody must lead: uncordon another one first"},
		{"leadership for a cordoned member", fmt.Errorf("move: %w", &member.CordonedError{Name: "m2"}), codes.FailedPrecondition,
			"etcdserver: m2 is cordoned and takes no leadership: choose another member, or run `quorate member uncordon m2` first"},
		{"anything else is Unknown", errors.New("disk on fire"), codes.Unknown, "disk on fire"},
	} {
		got := status.Convert(Wire(row.err))
		if got.Code() != row.code || got.Message() != row.text {
			t.Errorf("%s: got %v %q, want %v %q", row.name, got.Code(), got.Message(), row.code, row.text)
		}
	}
	if Wire(nil) != nil {
		t.Error("no error became one")
	}
}
