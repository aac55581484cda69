package encryption

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/chart"
	"github.com/quorate/quorate/internal/console/page"
)

// keyRow is a data key.
type keyRow struct {
	ID, Made, Age string
	Active        bool
	Files, Bytes  int64
	Share         string
	Meter         template.HTML
}

// keysView are the keys of one member.
type keysView struct {
	Member          string
	Off             bool // the directory of this member is not encrypted
	Wrapped, Called string
	Rows            []keyRow
	Left            int // keys that are not listed
	Plain           int64
	Admin           bool
	Rotate          string // the command that begins a new key
}

// mostKeys is how many keys are listed, those that have the most files first.
const mostKeys = 50

// keys asks the member that shows the console: it looks at all its files for that.
func keys(ctx context.Context, r *page.Request) (any, error) {
	v := &keysView{Member: r.Member, Admin: r.Admin, Rotate: r.Command("key", "rotate")}
	answer, err := quoratepb.NewEncryptionClient(r.Conn).Status(ctx, &quoratepb.EncryptionStatusRequest{})
	if status.Code(err) == codes.FailedPrecondition {
		v.Off = true
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	v.Wrapped, v.Called, v.Plain = wrappedBy(answer.GetProvider()), answer.GetWrappedBy(), answer.GetPlainBytes()
	whole := int64(0)
	for _, k := range answer.GetKeys() {
		whole += k.GetBytes()
	}
	for _, k := range answer.GetKeys() {
		made := time.Unix(k.GetCreatedSeconds(), 0)
		row := keyRow{ID: page.Text(k.GetId()), Made: page.Moment(made.UnixMilli()), Active: k.GetActive(), Files: k.GetFiles(),
			Bytes: k.GetBytes(), Age: page.Duration(max(r.Now.Sub(made), 0).Truncate(time.Minute))}
		if whole > 0 {
			share := float64(k.GetBytes()) / float64(whole)
			row.Share = page.Percent(share)
			row.Meter = chart.Progress(row.Share+" of what is encrypted", share)
		}
		v.Rows = append(v.Rows, row)
	}
	slices.SortStableFunc(v.Rows, func(a, b keyRow) int {
		if a.Active != b.Active {
			return map[bool]int{true: -1, false: 1}[a.Active]
		}
		return cmp.Or(-cmp.Compare(a.Bytes, b.Bytes), -cmp.Compare(a.Made, b.Made))
	})
	v.Left = max(0, len(v.Rows)-mostKeys)
	v.Rows = v.Rows[:len(v.Rows)-v.Left]
	return v, nil
}

// rotate begins a new key.
func rotate(ctx context.Context, r *page.Request) (out page.Outcome, err error) {
	if r.Form.Get("typed") != r.Member {
		return out, page.FormError("The name that was typed is not " + page.Name(r.Member) + ". Nothing was changed.")
	}
	_, err = quoratepb.NewEncryptionClient(r.Conn).Rotate(ctx, &quoratepb.RotateKeyRequest{})
	return page.Outcome{To: path, Said: page.Name(r.Member) + " has a new key: its new files are encrypted with it."}, err
}
