package audit

import (
	"cmp"
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
)

// headRow is the newest head of a chain of records.
type headRow struct {
	Member, File string
	Record       uint64
	At, Ago      string
	Kept         int // heads of the chain
}

// command is a command line with its purpose.
type command struct{ For, Line string }

type headsView struct {
	Rows     []headRow
	Left     int
	Commands []command
}

// mostHeads is how many chains are listed, the newest first.
const mostHeads = 20

// heads shows what the cluster keeps of the chains, and how files are verified by it.
func heads(ctx context.Context, r *page.Request) (any, error) {
	answer, err := quoratepb.NewAuditClient(r.Conn).Heads(ctx, &quoratepb.AuditHeadsRequest{})
	if err != nil {
		return nil, err
	}
	all, err := observed.Ask(ctx, r)
	if err != nil {
		all = observed.Of(nil) // heads are known without it
	}
	return headsOf(answer.GetHeads(), all, r), nil
}

func headsOf(heads []*quoratepb.AuditHead, all *observed.Answer, r *page.Request) *headsView {
	v := new(headsView)
	newest, kept := map[uint64]*quoratepb.AuditHead{}, map[uint64]int{}
	for _, h := range heads {
		kept[h.GetChain()]++
		if last := newest[h.GetChain()]; last == nil || h.GetSequence() > last.GetSequence() {
			newest[h.GetChain()] = h
		}
	}
	chains := make([]*quoratepb.AuditHead, 0, len(newest))
	for _, h := range newest {
		chains = append(chains, h)
	}
	slices.SortFunc(chains, func(a, b *quoratepb.AuditHead) int {
		return cmp.Or(-cmp.Compare(a.GetUnixMillis(), b.GetUnixMillis()), cmp.Compare(a.GetChain(), b.GetChain()))
	})
	v.Left = max(0, len(chains)-mostHeads)
	for _, h := range chains[:len(chains)-v.Left] {
		ago := max(r.Now.Sub(time.UnixMilli(h.GetUnixMillis())), 0)
		v.Rows = append(v.Rows, headRow{Member: all.NameOf(h.GetMember()), File: h.GetFile(), Record: h.GetSequence(),
			At: page.Moment(h.GetUnixMillis()), Ago: page.Seconds(ago), Kept: kept[h.GetChain()]})
	}
	for _, m := range all.Members {
		for _, sink := range m.Says.GetAudit() {
			if pattern := filesOf(sink); pattern != "" && len(v.Commands) < mostHeads {
				line := r.Command("audit", "verify", "FILES")
				v.Commands = append(v.Commands, command{"on the machine of " + m.Name,
					strings.Replace(line, "FILES", pattern, 1)})
			}
		}
	}
	return v
}

// plainPath is a path that a shell takes as it is.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.,:/=@%+-]+$`)

// filesOf is a pattern of a shell for the file of an output and those that were put aside; empty: there is none.
func filesOf(sink *quoratepb.ObservedOutput) string {
	name := sink.GetName()
	if sink.GetKind() != "file" || !plainPath.MatchString(name) || strings.HasPrefix(name, "-") {
		return ""
	}
	suffix := filepath.Ext(name)
	return strings.TrimSuffix(name, suffix) + "*" + suffix + "*"
}
