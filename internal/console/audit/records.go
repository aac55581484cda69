package audit

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/audit"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl/wording"
)

// mostRecords is how many records are shown.
const mostRecords = 50

// recordRow is a record as the table shows it.
type recordRow struct {
	Time, User, From, Call, About string
	Look, Outcome                 string
	Revision                      int64
	Event                         string // a sentence, in the place of the columns behind the time; empty: a call
}

type recordsView struct {
	Member, Output string
	None           string // why there are no records to read; empty: there are
	User, Prefix   string // as they were typed
	Operation      string
	Asked          bool
	Fault          string
	Operations     []string
	Rows           []recordRow
	Looked         int64
	Whole          bool
}

// askedRecords is what the form of records asks for.
func askedRecords(q url.Values) (ask *quoratepb.AuditRecordsRequest, fault string) {
	ask = &quoratepb.AuditRecordsRequest{Limit: mostRecords, Operation: q.Get("operation")}
	if text := q.Get("by"); text != "" {
		user, ok := page.KeyOf(text)
		if !ok || !utf8.Valid(user) {
			return ask, `A user that begins with a quote has escapes such as \u00e4, and ends with a quote.`
		}
		ask.User = proto.String(string(user))
	}
	if text := q.Get("prefix"); text != "" {
		prefix, ok := page.KeyOf(text)
		if !ok {
			return ask, `A prefix that begins with a quote has escapes such as \x00, and ends with a quote.`
		}
		ask.Prefix = prefix
	}
	if _, ok := audit.ParseOp(ask.GetOperation()); !ok && ask.GetOperation() != "" {
		return ask, "There is no operation " + page.Name(ask.GetOperation()) + "."
	}
	return ask, ""
}

// records shows the latest records of this member's file.
func records(ctx context.Context, r *page.Request) (any, error) {
	ask, fault := askedRecords(r.Query)
	v := &recordsView{Member: r.Member, User: page.KeyField(r.Query.Get("by")),
		Prefix: page.KeyField(r.Query.Get("prefix")), Operation: page.Text(ask.GetOperation()),
		Operations: audit.Ops(), Fault: fault}
	v.Asked = v.User != "" || v.Prefix != "" || v.Operation != ""
	if fault != "" {
		return v, nil
	}
	answer, err := quoratepb.NewAuditClient(r.Conn).Records(ctx, ask)
	if status.Code(err) == codes.FailedPrecondition {
		v.None = capital(page.Text(status.Convert(err).Message())) + "."
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	v.Output, v.Looked, v.Whole = answer.GetOutput(), answer.GetLookedAt(), answer.GetWhole()
	for _, line := range answer.GetLines() {
		if e, ok := audit.ParseEntry([]byte(line)); ok {
			v.Rows = append(v.Rows, recordOf(&e))
		}
	}
	return v, nil
}

// outcomes are the classes of decisions.
var outcomes = map[string]string{"denied": "bad", "refused": "warn"}

func recordOf(e *audit.Entry) recordRow {
	row := recordRow{Time: page.Moment(e.Time.UnixMilli()), User: e.User, From: e.From, Call: e.Op, Revision: e.Revision,
		About: wording.RecordAbout(e), Look: outcomes[e.Decision], Outcome: wording.RecordOutcome(e),
		Event: wording.RecordEvent(e)}
	if row.Look == "" && e.Code != "" {
		row.Look = "warn"
	}
	return row
}

// recordsCommand is the command line that shows the same.
func recordsCommand(r *page.Request) string {
	ask, fault := askedRecords(r.Query)
	if fault != "" || !typeable(ask.GetUser(), string(ask.GetPrefix())) {
		return ""
	}
	line := []string{"audit", "records"}
	for _, pair := range [][2]string{
		{"--by", ask.GetUser()}, {"--prefix", string(ask.GetPrefix())}, {"--operation", ask.GetOperation()},
	} {
		if pair[1] != "" {
			line = append(line, pair[0], pair[1])
		}
	}
	return r.Command(append(line, "--limit", fmt.Sprint(mostRecords))...)
}

// typeable reports whether a shell takes texts as they are shown.
func typeable(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool {
		return !utf8.ValidString(text) || strings.HasPrefix(text, "-") ||
			strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
	})
}
