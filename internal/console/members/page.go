package members

import (
	"context"
	"embed"
	"io/fs"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/base/invariant"
	"github.com/quorate/quorate/internal/console/page"
)

//go:embed *.html
var templates embed.FS

// Page returns the page.
func Page() page.Page {
	return page.Page{
		Path: "/members", Name: "Members", About: "Who votes, how far each member is, and how many may fail.",
		Templates: fs.FS(templates),
		Sections: []page.Section{
			{ID: "members-list", Title: "Members", Live: true, Wide: true, Template: "members-list", Load: list,
				Command: page.Is("member", "list")},
		},
	}
}

// row is a member as the table shows it.
type row struct {
	ID                uint64
	Name, Role, State string
	Good              bool // nothing is wrong with it
	Leader            bool
	Zone              string
	Level             uint32
	Lag               uint64
	Build             string
	PeerURLs          []string
	ClientURLs        []string
}

type view struct {
	Rows     []row
	Strength *quoratepb.Strength
}

// list asks for the configuration in force and the state of each member, as the leader sees it.
func list(ctx context.Context, r *page.Request) (any, error) {
	answer, err := quoratepb.NewMembershipClient(r.Conn).Describe(ctx, &quoratepb.DescribeRequest{})
	if err != nil {
		return nil, err
	}
	cluster := answer.GetCluster()
	v := view{Strength: cluster.GetStrength()}
	for _, m := range cluster.GetMembers() {
		role, known := roles[m.GetRole()]
		invariant.True(known || m.GetRole() > quoratepb.Role_ROLE_DEMOTING, "role %v has no name", m.GetRole())
		v.Rows = append(v.Rows, row{ID: m.GetId(), Name: m.GetName(), Role: role, Good: m.GetActive(), Leader: m.GetLeader(),
			Zone: m.GetZone(), Level: m.GetLevel(), Lag: m.GetLag(), Build: m.GetBuild(), PeerURLs: m.GetPeerUrls(),
			ClientURLs: m.GetClientUrls()})
	}
	return v, nil
}

var roles = map[quoratepb.Role]string{
	quoratepb.Role_ROLE_UNSPECIFIED: "unknown",
	quoratepb.Role_ROLE_VOTER:       "voter",
	quoratepb.Role_ROLE_LEARNER:     "learner",
	quoratepb.Role_ROLE_JOINING:     "joining",
	quoratepb.Role_ROLE_INCOMING:    "incoming voter",
	quoratepb.Role_ROLE_OUTGOING:    "outgoing voter",
	quoratepb.Role_ROLE_DEMOTING:    "voter, to be a learner",
}
