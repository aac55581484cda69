package undelete

import (
	"context"
	"fmt"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
)

// TimeError refuses a time for which there is no revision that is certain.
type TimeError struct {
	At     time.Time
	Answer *quoratepb.RevisionAtAnswer
}

// Error implements error.
func (e *TimeError) Error() string {
	const layout = "2006-01-02 15:04:05"
	at := e.At.UTC().Format(layout)
	switch a := e.Answer; {
	case a.GetRepeated() != nil:
		return fmt.Sprintf("%s UTC was more than once, since clocks of members went back: at revision %d for the first time, "+
			"and at revision %d for the last: give a revision", at, a.GetAtLeast(), a.GetRepeated().GetRevision())
	case a.GetAtLeast() == 0 && a.GetBefore() == nil:
		return "this cluster has not noted times yet, which it does from feature level 2 on (`quorate upgrade status`): give " +
			"a revision"
	case a.GetAtLeast() == 0:
		return fmt.Sprintf("%s UTC is before all times that are known: the first is %s, of revision %d", at,
			time.UnixMilli(a.GetBefore().GetUnixMs()).UTC().Format(layout), a.GetBefore().GetRevision())
	default:
		return fmt.Sprintf("%s UTC was at revision %d, which is compacted: the history is kept since revision %d", at,
			a.GetAtLeast(), a.GetFirstRevision())
	}
}

// RevisionAt asks for the last revision that certainly was there at a time. The error is a TimeError, or that of a call.
func (c *Cluster) RevisionAt(ctx context.Context, at time.Time) (answer *quoratepb.RevisionAtAnswer, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		answer, err = quoratepb.NewHistoryClient(c.Conn).RevisionAt(ctx,
			&quoratepb.RevisionAtRequest{UnixMs: at.UnixMilli(), Linearizable: true})
		return err
	})
	if err != nil {
		return nil, err
	}
	if answer.GetRepeated() != nil || answer.GetAtLeast() < max(answer.GetFirstRevision(), 1) {
		return nil, &TimeError{at, answer}
	}
	return answer, nil
}
