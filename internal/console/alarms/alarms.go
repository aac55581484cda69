package alarms

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/console/observed"
	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/prose"
	"github.com/quorate/quorate/internal/ctl/survey"
	"github.com/quorate/quorate/internal/doctor"
)

// mostAlarms is how many alarms are shown.
const mostAlarms = 64

// alarmTable is the alarms that stand, and whom the page knows them from.
type alarmTable struct {
	Alarms   []alarm
	Left     int
	Answered int
	Members  int
}

// alarm is one alarm, or another state of a member that an operator ends.
type alarm struct {
	Kind  string
	About string // the member; empty: the cluster
	To    string // its page
	Words []prose.Piece
	Cures []command
}

var errNothing = status.Error(codes.Unavailable, "no member said what it observes")

func standing(ctx context.Context, r *page.Request) (any, error) {
	all, err := observed.Ask(ctx, r)
	if err != nil {
		return nil, err
	}
	if all.Answered() == 0 {
		return nil, errNothing
	}
	b := alarmsOf(all, r)
	b.Left = max(0, len(b.Alarms)-mostAlarms)
	b.Alarms = b.Alarms[:len(b.Alarms)-b.Left]
	return b, nil
}

func alarmsOf(all *observed.Answer, r *page.Request) *alarmTable {
	b := &alarmTable{Answered: all.Answered(), Members: len(all.Members)}
	cures := map[doctor.Code]string{}
	for _, f := range doctor.Judge(all.Collected) {
		if cures[f.Code] == "" {
			cures[f.Code] = f.Cure
		}
	}
	told := map[[2]string]bool{}
	for _, m := range all.Members {
		for _, stored := range m.Says.GetAlarms() {
			key := [2]string{stored.GetKind(), observed.Hex(stored.GetMember())}
			if !told[key] {
				told[key] = true
				b.Alarms = append(b.Alarms, explain(all, stored, cures, r))
			}
		}
	}
	for _, m := range all.Members {
		own := func(kind, words string) {
			b.Alarms = append(b.Alarms, alarm{Kind: kind, About: m.Name, To: "/members?member=" + observed.Hex(m.ID),
				Words: prose.Of(words)})
		}
		if m.Says.GetDisk().GetLow() {
			own("disk nearly full",
				"Less than the reserve is free on the disk of "+m.Name+": it refuses writes that grow. Free space; "+
					"the state ends by itself.")
		}
		if m.Says.GetCore().GetCorrupt() && !told[[2]string{"CORRUPT", observed.Hex(m.ID)}] {
			own("CORRUPT", prose.Capital(survey.ExplainAlarm("CORRUPT", m.ID, m.Name))+".")
		}
		if text := m.Says.GetCore().GetSuperseded(); text != "" {
			own("superseded", text)
		}
		for _, text := range m.Says.GetTroubles() {
			own("process that should not run", text)
		}
	}
	return b
}

// explain says what a stored alarm means, and which commands end it.
func explain(all *observed.Answer, stored *quoratepb.ObservedAlarm, cures map[doctor.Code]string, r *page.Request) alarm {
	m := all.Member(stored.GetMember())
	name := ""
	a := alarm{Kind: stored.GetKind()}
	if m != nil {
		name = m.Name
		a.About, a.To = m.Name, "/members?member="+observed.Hex(m.ID)
	}
	a.Words = prose.Of(prose.Capital(survey.ExplainAlarm(stored.GetKind(), stored.GetMember(), name)) + ".")
	switch {
	case stored.GetKind() == "NOSPACE":
		if cure := cures[doctor.NoSpace]; cure != "" {
			a.Cures = append(a.Cures, command{"once keys are deleted", r.Command(strings.Fields(cure)[1:]...)})
		}
		a.Cures = append(a.Cures, command{"once the quota is raised instead", r.Command("alarm", "disarm")})
	case stored.GetKind() == "CORRUPT" && m == nil:
		a.Cures = append(a.Cures, command{"compare the members", r.Command("endpoint", "hashkv", "--cluster")})
	case stored.GetKind() == "CORRUPT":
		a.Cures = append(a.Cures, command{"plan to give it the data of the others", r.Command("member", "reset", all.Word(m),
			"--dry-run")})
	}
	return a
}

// advice is what the leader says beside the alarms.
type advice struct {
	Advice string   // of automatic repair
	Others []string // members of other epochs that were met
	Left   int
}

func repair(ctx context.Context, r *page.Request) (any, error) {
	answer, err := quoratepb.NewMembershipClient(r.Conn).Describe(ctx, &quoratepb.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	met := answer.GetCluster().GetAlarms()
	a := advice{Advice: answer.GetCluster().GetAdvice(), Left: max(0, len(met)-mostAlarms)}
	a.Others = met[:len(met)-a.Left]
	return a, nil
}
