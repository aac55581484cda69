package alarms

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/upgrade"
)

// mostMembers is how many members a table has.
const mostMembers = 128

// levelView is the feature level, and what becomes of it.
type levelView struct {
	Active, Common uint32
	Policy         string
	Sentences      [][]prose.Piece
	Members        []memberLevel
	Left           int
	Without        bool // only what members observe is known: it needs a majority to say more
}

// memberLevel is the level that one member knows.
type memberLevel struct {
	Name, To, Build string
	Level           string
	Holds           bool // it does not know the highest level that another one knows
}

// statusPatience leaves the rest of the time to what is known without a leader.
const statusPatience = 1200 * time.Millisecond

// levels asks for the policy and the levels. Without a majority it shows the levels that members have published.
func levels(ctx context.Context, r *page.Request) (any, error) {
	bounded, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	answer, err := quoratepb.NewUpgradeClient(r.Conn).Status(bounded, &quoratepb.UpgradeStatusRequest{})
	if code := status.Code(err); code == codes.Unavailable || code == codes.DeadlineExceeded {
		if all, unobserved := observed.Ask(ctx, r); unobserved == nil && all.Config.GetLevel() > 0 {
			l := levelOf(published(all))
			l.Without, l.Sentences = true, nil
			return l, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return levelOf(answer), nil
}

// published is a status of what members have published, without a policy.
func published(all *observed.Answer) *quoratepb.UpgradeStatus {
	answer := &quoratepb.UpgradeStatus{Active: all.Config.GetLevel()}
	for i, m := range all.Config.GetMembers() {
		if i == 0 || m.GetLevel() < answer.Common {
			answer.Common = m.GetLevel()
		}
		answer.Members = append(answer.Members, &quoratepb.MemberLevel{Id: m.GetId(), Name: m.GetName(), Build: m.GetBuild(),
			Level: m.GetLevel()})
	}
	answer.Common = max(answer.Common, answer.Active)
	return answer
}

func levelOf(answer *quoratepb.UpgradeStatus) levelView {
	l := levelView{Active: answer.GetActive(), Common: answer.GetCommon(), Policy: answer.GetPolicy()}
	for _, sentence := range upgrade.Sentences(answer) {
		l.Sentences = append(l.Sentences, prose.Of(prose.Capital(sentence)+"."))
	}
	slices.SortStableFunc(answer.GetMembers(), func(a, b *quoratepb.MemberLevel) int {
		return cmp.Compare(a.GetName(),
			b.GetName())
	})
	highest := uint32(0)
	for _, m := range answer.GetMembers() {
		highest = max(highest, m.GetLevel())
	}
	for i, m := range answer.GetMembers() {
		if i >= mostMembers {
			l.Left = len(answer.GetMembers()) - mostMembers
			break
		}
		one := memberLevel{Name: cmp.Or(m.GetName(), observed.Hex(m.GetId())), To: "/members?member=" + observed.Hex(m.GetId()),
			Build: m.GetBuild(), Level: "not started", Holds: m.GetLevel() < highest}
		if m.GetLevel() > 0 {
			one.Level = strconv.FormatUint(uint64(m.GetLevel()), 10)
		}
		l.Members = append(l.Members, one)
	}
	return l
}
