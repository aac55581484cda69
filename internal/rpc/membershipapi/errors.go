package membershipapi

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/membership"
	"github.com/quorate/quorate/internal/rpc/etcderr"
)

// errorCodes maps what a member answers to native calls. The texts are the errors' own: no client compares them.
var errorCodes = []struct {
	err  error
	code codes.Code
}{
	{membership.ErrJobNotFound, codes.NotFound},
	{membership.ErrTooManyJobs, codes.ResourceExhausted},
	{member.ErrTooManyRequests, codes.ResourceExhausted},
	{membership.ErrAlreadyStarted, codes.AlreadyExists},
	{membership.ErrJobFailed, codes.Aborted},
	{membership.ErrChangeAborted, codes.Aborted},
	{member.ErrNoLeader, codes.Unavailable},
	{member.ErrNotLeader, codes.Unavailable},
	{member.ErrStopped, codes.Unavailable},
	{member.ErrRemoved, codes.Unavailable},
	{member.ErrLeaderFailed, codes.Unavailable},
	{member.ErrConnectionLost, codes.Unavailable},
	{member.ErrTimeout, codes.Unavailable},
	{errors.ErrUnsupported, codes.Unimplemented}, // members of two versions
	{context.Canceled, codes.Canceled},
	{context.DeadlineExceeded, codes.DeadlineExceeded},
}

// refusalCodes are the refusals that are not a FAILED_PRECONDITION.
var refusalCodes = map[consensus.RefusalReason]codes.Code{
	consensus.ReasonNoLeader:       codes.Unavailable,
	consensus.ReasonBusy:           codes.ResourceExhausted,
	consensus.ReasonChangePending:  codes.Unavailable,
	consensus.ReasonMemberNotFound: codes.NotFound,
	consensus.ReasonMemberRemoved:  codes.NotFound,
	consensus.ReasonMemberExists:   codes.AlreadyExists,
	consensus.ReasonPeerURLExists:  codes.AlreadyExists,
	consensus.ReasonBadRequest:     codes.InvalidArgument,
}

// wireError turns the error of a native call into one for the wire. expected is the configuration that the caller
// believed in force, if it said so.
func wireError(err error, expected consensus.ConfigID) error {
	var blocked *membership.BlockedError
	var fault *membership.SpecError
	var refused *membership.RefusedError
	var address *membership.AddressError
	switch {
	case errors.As(err, &blocked):
		return status.Error(codes.FailedPrecondition, strings.Join(blocked.Plan.Blockers, "\n"))
	case errors.As(err, &fault):
		return status.Error(codes.InvalidArgument, fault.Text)
	case errors.As(err, &refused):
		return refusalError(refused, expected)
	case errors.As(err, &address):
		return status.Error(codes.FailedPrecondition, address.Text)
	}
	for _, row := range errorCodes {
		if errors.Is(err, row.err) {
			return status.Error(row.code, strings.TrimPrefix(err.Error(), "member: "))
		}
	}
	return etcderr.Wire(err)
}

func refusalError(refused *membership.RefusedError, expected consensus.ConfigID) error {
	if refused.Reason == consensus.ReasonStaleConfig {
		return staleConfig(expected, refused.Config, refused.Why)
	}
	code, ok := refusalCodes[refused.Reason]
	if !ok {
		code = codes.FailedPrecondition
	}
	return status.Error(code, refused.Reason.String())
}

// staleConfig refuses a caller whose picture of the cluster is old, and tells the current one and what has changed.
func staleConfig(expected, current consensus.ConfigID, why string) error {
	text := fmt.Sprintf("configuration %v was expected, and %v is in force", expected, current)
	if expected == current { // it is the jobs that are others
		text = "the plan is out of date"
	}
	if why != "" {
		text += " (" + why + ")"
	}
	refusal := status.New(codes.FailedPrecondition, text+": look at the members again, then decide")
	detailed, err := refusal.WithDetails(&quoratepb.StaleConfig{Current: configIDMessage(current), Changed: why})
	if err != nil {
		return refusal.Err()
	}
	return detailed.Err()
}
