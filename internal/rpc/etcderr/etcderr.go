package etcderr

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/auth/login"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/lease"
	"github.com/quorate/quorate/internal/limits/admission"
	"github.com/quorate/quorate/internal/member"
	"github.com/quorate/quorate/internal/member/epoch"
	"github.com/quorate/quorate/internal/member/lanes"
	"github.com/quorate/quorate/internal/membership"
)

// Some of etcd's errors reach its clients with code Unknown instead of the code that rpctypes names. clientv3 maps by
// text, but other clients see the code, so it is kept.
var (
	ErrNotEnoughStarted = status.Error(codes.Unknown, rpctypes.ErrorDesc(rpctypes.ErrGRPCMemberNotEnoughStarted))
	errTooManyRequests  = status.Error(codes.Unknown, rpctypes.ErrorDesc(rpctypes.ErrGRPCRequestTooManyRequests))
)

// Why a leader refuses what etcd has no error for. Only the first is worth a retry.
var (
	errChangePending = status.Error(codes.Unavailable, "etcdserver: another membership change is in progress")
	// errLastVoter: etcd would let the cluster lose its last voter.
	errLastVoter   = status.Error(codes.FailedPrecondition, "etcdserver: the last voting member cannot be removed")
	errStaleConfig = status.Error(codes.FailedPrecondition,
		"etcdserver: the membership has changed since it was looked at, list the members and ask again")
	errProtocol = status.Error(codes.FailedPrecondition,
		"etcdserver: this membership change cannot be made by the protocol that was asked for")
	errTooLate = status.Error(codes.FailedPrecondition,
		"etcdserver: the membership change is decided and can no longer be undone")
	errAllCordoned = status.Error(codes.FailedPrecondition,
		"etcdserver: every voter would be cordoned, and somebody must lead: uncordon another one first")
	errNoChange = status.Error(codes.FailedPrecondition, "etcdserver: there is nothing to change about the membership")
)

// mapping is a row of a table of errors.
type mapping struct{ from, to error }

// wireErrors maps what kv, auth and member return to etcd's errors.
var wireErrors = []mapping{
	{admission.ErrQueueFull, rpctypes.ErrGRPCRequestTooManyRequests},

	{kv.ErrCompacted, rpctypes.ErrGRPCCompacted},
	{kv.ErrFutureRevision, rpctypes.ErrGRPCFutureRev},
	{kv.ErrKeyNotFound, rpctypes.ErrGRPCKeyNotFound},
	{kv.ErrLeaseNotFound, rpctypes.ErrGRPCLeaseNotFound},
	{kv.ErrLeaseExists, rpctypes.ErrGRPCLeaseExist},
	{kv.ErrLeaseTTLTooBig, rpctypes.ErrGRPCLeaseTTLTooLarge},
	{kv.ErrNoSpace, rpctypes.ErrGRPCNoSpace},
	{kv.ErrCorrupt, rpctypes.ErrGRPCCorrupt},
	{kv.ErrSessionUnknown, rpctypes.ErrGRPCStopped},
	{kv.ErrAborted, rpctypes.ErrGRPCTimeoutDueToLeaderFail}, // it never shows: the proposer tries again
	{kv.ErrSkipped, rpctypes.ErrGRPCLeaderChanged},
	{kv.ErrDeposed, rpctypes.ErrGRPCLeaderChanged},
	{kv.ErrLooksTooFar, rpctypes.ErrGRPCRequestTooLarge},
	{auth.ErrRootUserNotExist, rpctypes.ErrGRPCRootUserNotExist},
	{auth.ErrRootRoleNotExist, rpctypes.ErrGRPCRootRoleNotExist},
	{auth.ErrUserAlreadyExist, rpctypes.ErrGRPCUserAlreadyExist},
	{auth.ErrUserEmpty, rpctypes.ErrGRPCUserEmpty},
	{auth.ErrUserNotFound, rpctypes.ErrGRPCUserNotFound},
	{auth.ErrRoleAlreadyExist, rpctypes.ErrGRPCRoleAlreadyExist},
	{auth.ErrRoleNotFound, rpctypes.ErrGRPCRoleNotFound},
	{auth.ErrRoleEmpty, rpctypes.ErrGRPCRoleEmpty},
	{auth.ErrPermissionDenied, rpctypes.ErrGRPCPermissionDenied},
	{auth.ErrRoleNotGranted, rpctypes.ErrGRPCRoleNotGranted},
	{auth.ErrPermissionNotGranted, rpctypes.ErrGRPCPermissionNotGranted},
	{auth.ErrInvalidManagement, rpctypes.ErrGRPCInvalidAuthMgmt},
	{auth.ErrOldRevision, rpctypes.ErrGRPCAuthOldRevision},
	{login.ErrNotEnabled, rpctypes.ErrGRPCAuthNotEnabled},
	{login.ErrFailed, rpctypes.ErrGRPCAuthFailed},
	{login.ErrInvalidToken, rpctypes.ErrGRPCInvalidAuthToken},
	{login.ErrVerifyOnly, rpctypes.ErrGRPCInvalidAuthMgmt},

	{lease.ErrNotPrimary, rpctypes.ErrGRPCLeaderChanged},

	{member.ErrStopped, rpctypes.ErrGRPCStopped},
	{member.ErrRemoved, rpctypes.ErrGRPCStopped},
	{member.ErrNoLeader, rpctypes.ErrGRPCNoLeader},
	{member.ErrTimeout, rpctypes.ErrGRPCTimeout},
	{member.ErrLeaderFailed, rpctypes.ErrGRPCTimeoutDueToLeaderFail},
	{member.ErrConnectionLost, rpctypes.ErrGRPCTimeoutDueToConnectionLost},
	{member.ErrTooManyRequests, errTooManyRequests},
	{member.ErrTooLarge, rpctypes.ErrGRPCRequestTooLarge},
	{member.ErrNotLeader, rpctypes.ErrGRPCNotLeader},
	{member.ErrBadTransferee, rpctypes.ErrGRPCBadLeaderTransferee},
	{member.ErrTransferTimeout, rpctypes.ErrGRPCTimeoutDueToLeaderFail},
}

// ownErrors maps what etcd has no error for, or none that its clients know by its text.
var ownErrors = []mapping{
	{auth.ErrPermissionNotGiven, rpctypes.ErrGRPCPermissionNotGiven},
	{auth.ErrBadName, status.Error(codes.InvalidArgument, "etcdserver: names of users and roles are text of at most 1 KiB")},
	{auth.ErrTooLarge, status.Error(codes.ResourceExhausted, "etcdserver: users and roles take as much memory as they may")},
	{kv.ErrOverQuota, status.Error(codes.ResourceExhausted,
		"etcdserver: the quota of a prefix is reached: delete keys, or ask an operator")},
	{kv.ErrLimitNotFound, status.Error(codes.NotFound, "there is no limit of this name: quorate limit list prints them")},
	{kv.ErrTooManyLimits, status.Error(codes.ResourceExhausted, "there are as many limits as there may be: delete one first")},
	{auth.ErrTokenInvalid, status.Error(codes.NotFound, "there is no such join token")},
	{auth.ErrTokenExpired, status.Error(codes.FailedPrecondition, "the join token has expired")},
	{auth.ErrTokenUsed, status.Error(codes.FailedPrecondition, "the join token was used up")},
	{auth.ErrTokenExists, status.Error(codes.AlreadyExists, "the join token exists")},
	{auth.ErrTooManyTokens, status.Error(codes.ResourceExhausted, "there are as many join tokens as there may be")},
	{login.ErrBusy, status.Error(codes.ResourceExhausted, "etcdserver: too many logins at once, try again")},
	{login.ErrNameTooLong, status.Error(codes.InvalidArgument, "etcdserver: the user name is too long for a token")},
}

// refusals maps why a leader refused a configuration change to what goes on the wire.
var refusals = map[consensus.RefusalReason]error{
	consensus.ReasonNoLeader:        rpctypes.ErrGRPCNoLeader,
	consensus.ReasonBusy:            errTooManyRequests,
	consensus.ReasonStaleConfig:     errStaleConfig,
	consensus.ReasonChangePending:   errChangePending,
	consensus.ReasonMemberExists:    rpctypes.ErrGRPCMemberExist,
	consensus.ReasonPeerURLExists:   rpctypes.ErrGRPCPeerURLExist,
	consensus.ReasonMemberNotFound:  rpctypes.ErrGRPCMemberNotFound,
	consensus.ReasonMemberRemoved:   rpctypes.ErrGRPCMemberNotFound,
	consensus.ReasonNotLearner:      rpctypes.ErrGRPCMemberNotLearner,
	consensus.ReasonLearnerLags:     rpctypes.ErrGRPCLearnerNotReady,
	consensus.ReasonLastVoter:       errLastVoter,
	consensus.ReasonQuorumLost:      rpctypes.ErrGRPCUnhealthy,
	consensus.ReasonTooManyLearners: rpctypes.ErrGRPCTooManyLearners,
	consensus.ReasonBadRequest:      rpctypes.ErrGRPCMemberBadURLs,
	consensus.ReasonProtocol:        errProtocol,
	consensus.ReasonTooLate:         errTooLate,
	consensus.ReasonNoChange:        errNoChange,
	consensus.ReasonBound:           rpctypes.ErrGRPCMemberExist,
	consensus.ReasonUnbound:         rpctypes.ErrGRPCLearnerNotReady,
	consensus.ReasonAllCordoned:     errAllCordoned,
}

// Text is an error with the text that etcd would show.
func Text(err error) error {
	for _, row := range wireErrors {
		if errors.Is(err, row.from) {
			return errors.New(rpctypes.ErrorDesc(row.to))
		}
	}
	return err
}

// Wire turns any error into one that may go on the wire.
func Wire(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	for _, cause := range [2]error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return status.FromContextError(cause).Err()
		}
	}
	for _, table := range [2][]mapping{wireErrors, ownErrors} {
		for _, row := range table {
			if errors.Is(err, row.from) {
				return row.to
			}
		}
	}
	var refused *membership.RefusedError
	if errors.As(err, &refused) {
		if to, ok := refusals[refused.Reason]; ok {
			return to
		}
	}
	var superseded *epoch.SupersededError
	if errors.As(err, &superseded) {
		return status.Error(codes.Unavailable, "etcdserver: "+superseded.Text) // clients try another member
	}
	var cordoned *member.CordonedError
	if errors.As(err, &cordoned) {
		return status.Error(codes.FailedPrecondition, "etcdserver: "+cordoned.Error())
	}
	var held *level.HeldError
	if errors.As(err, &held) {
		return status.Error(codes.FailedPrecondition, "etcdserver: "+held.Error())
	}
	var needs *lanes.NeedsLevelError
	if errors.As(err, &needs) {
		return status.Error(codes.FailedPrecondition, "etcdserver: "+needs.Error())
	}
	var address *membership.AddressError
	if errors.As(err, &address) {
		return status.Error(codes.FailedPrecondition, "etcdserver: "+address.Text)
	}
	return status.Error(codes.Unknown, err.Error())
}
