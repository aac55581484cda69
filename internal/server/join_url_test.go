package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/config"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/transport"
)

func TestExplainJoin(t *testing.T) {
	refused := func(reason consensus.RefusalReason) error { return &membership.RefusedError{Reason: reason} }
	for _, row := range []struct {
		name  string
		err   error
		final bool
		want  string
	}{
		{"a lost disk", fmt.Errorf("told: %w", membership.ErrAlreadyStarted), true, "peer URLs are mistyped"},
		{"learners enough", refused(consensus.ReasonTooManyLearners), true, "--max-learners"},
		{"another change", refused(consensus.ReasonChangePending), false, "another membership change is under way"},
		{"an id in use", refused(consensus.ReasonMemberExists), true, "quorate member list"},
		{"an election", member.ErrNoLeader, false, "no leader"},
		{"nobody there", status.Error(codes.Unavailable, "connection refused"), false, "connection refused"},
		{"encryption that nobody speaks", status.Error(codes.Unavailable, "transport: TLS handshake with \"https://a:1\": tls: "+
			"first record does not look like a TLS handshake"), true, "correct the scheme of --join"},
		{"out of time", context.DeadlineExceeded, false, "deadline"},
		{"nobody to replace", &membership.SpecError{Text: "no member has the name x"}, true, "no member has the name x"},
		{"an older member", status.Error(codes.Unimplemented, `member: unknown request "cluster.join"`), true, "too old"},
		{"a client URL", status.Error(codes.Unimplemented, "unknown service quorate.Peer"), true, "not a client URL"},
		{"an older cluster", status.Error(codes.FailedPrecondition, "newer protocol version"), true, "the version that the"},
		{"no certificates", fmt.Errorf("%w: x", transport.ErrNeedsTLS), true, "correct --join"},
	} {
		url := config.URL{Scheme: "http", Address: "a:1"}
		err := explainJoin(url, row.err)
		var final *joinRefusal
		if strings.Contains(err.Error(), "--replaces=") || strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: it names somebody to replace or to remove whom it does not know: %q", row.name, err)
		}
		if got := errors.As(err, &final); got != row.final || !strings.Contains(err.Error(), row.want) ||
			!strings.HasPrefix(err.Error(), "http://a:1: ") {
			t.Errorf("%s: got %q, final %v; want %q, %v", row.name, err, got, row.want, row.final)
		}
	}
}
