package console

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/console/page"
)

// explain says in words for a reader why something could not be loaded or done, for which the console waited for so long.
// heading is short, said a sentence or two.
func explain(err error, waited time.Duration) (heading, said string) {
	var form page.FormError
	if errors.As(err, &form) {
		return "Not done", string(form)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "No answer in time", "The member did not have this within " + seconds(waited) + "."
	}
	text := page.Text(status.Convert(err).Message())
	switch status.Code(err) {
	case codes.PermissionDenied:
		return "Not permitted", "Your user may not see or do this (" + text +
			"). Ask for a role that may, or log in as another user."
	case codes.Unauthenticated:
		return "The session ended", "Log in again."
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return "No answer in time", "The member did not have this within " + seconds(waited) + " (" + text +
			"). Where no majority of voters is up, what needs one waits for it: the first page says which are missing."
	case codes.Unimplemented:
		return "Not served", "The program of this member does not serve this (" + text + ")."
	case codes.ResourceExhausted:
		return "Too much at once", text
	}
	return "Refused", text
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f seconds", math.Ceil(d.Seconds())) }

// mayBeDone tells whether something that failed with err may have been done all the same.
func mayBeDone(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return true
	}
	return false
}

// quoted is a text of a request in quotes, without what a reader must not be shown.
func quoted(text string) string { return strconv.Quote(page.Text(text)) }
