package rpc

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/audit/trail"
)

// mostRecords bounds the records of one answer, and mostRecordBytes their bytes.
const (
	mostRecords     = 200
	mostRecordBytes = 512 << 10
)

var (
	errNoAuditFile = status.Error(codes.FailedPrecondition, "this member writes records to no file: --audit-log names one, "+
		"and what goes to the journal or syslog is read there")
	errRecordsBusy = status.Error(codes.ResourceExhausted, "another call reads the records of this member: try again")
)

// Records returns the latest records of this member's file. One call reads at a time.
func (a *auditService) Records(
	_ context.Context, r *quoratepb.AuditRecordsRequest,
) (*quoratepb.AuditRecords, error) {
	matches, err := recordsWanted(r)
	switch {
	case err != nil:
		return nil, err
	case a.audits.trail == nil:
		return nil, errNoAuditFile
	case !a.reading.TryLock():
		return nil, errRecordsBusy
	}
	defer a.reading.Unlock()
	most := mostRecords
	if n := r.GetLimit(); n > 0 {
		most = int(min(n, mostRecords))
	}
	tail, err := a.audits.trail.Tail(most, matches)
	if errors.Is(err, trail.ErrNoFile) {
		return nil, errNoAuditFile
	}
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "the records cannot be read: %v", err)
	}
	answer := &quoratepb.AuditRecords{Member: a.self, Output: strings.ToValidUTF8(tail.Output, "\uFFFD"),
		LookedAt: int64(tail.Looked), Whole: tail.Whole}
	size := 0
	for _, line := range tail.Lines {
		if size += len(line); size > mostRecordBytes {
			answer.Whole = false
			break
		}
		answer.Lines = append(answer.Lines, strings.ToValidUTF8(string(line), "\uFFFD"))
	}
	return answer, nil
}

// recordsWanted checks a request, and returns which records it wants.
func recordsWanted(r *quoratepb.AuditRecordsRequest) (func(*audit.Entry) bool, error) {
	if r.GetLimit() < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "quorate: limit is %d: give how many records are wanted, or 0",
			r.GetLimit())
	}
	if _, ok := audit.ParseOp(r.GetOperation()); !ok && r.GetOperation() != "" {
		return nil, status.Errorf(codes.InvalidArgument, "quorate: there is no operation %.40q: one of %q",
			r.GetOperation(), audit.Ops())
	}
	return func(e *audit.Entry) bool {
		switch {
		case r.Operation != "" && e.Op != r.Operation, r.User != nil && (e.User != *r.User || e.Event != ""):
			return false
		}
		return r.Prefix == nil || e.Below(r.Prefix)
	}, nil
}
