package wording

import (
	"fmt"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/ctl/progress"
	"github.com/quorate/quorate/internal/membership"
)

// Replacement is one member out and one in: a newcomer with a name and peer URLs, or a learner that is there already.
type Replacement struct {
	Old, Name, With string
	PeerURLs        []string
}

// Spec says it for a cluster as it is: names become ids.
func (r *Replacement) Spec(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
	old, err := FindMember(cluster, r.Old)
	if err != nil {
		return nil, err
	}
	learner := old.Role == quoratepb.Role_ROLE_LEARNER
	spec := &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{old.Id}}
	if r.With == "" {
		spec.Add = []*quoratepb.Newcomer{{Name: r.Name, PeerUrls: r.PeerURLs, Learner: learner}}
		return spec, nil
	}
	next, err := FindMember(cluster, r.With)
	switch {
	case err != nil:
		return nil, err
	case next.Id == old.Id:
		return nil, fmt.Errorf("%s cannot take its own place", progress.Name(old))
	case learner:
		return nil, fmt.Errorf("%s is a learner and has no vote to pass on: `member remove %s` is enough", progress.Name(old),
			r.Old)
	}
	spec.Promote = []uint64{next.Id}
	return spec, nil
}

// Reset gives the place of a member whose disk is lost to a new one with the same name and URLs.
func Reset(cluster *quoratepb.Cluster, name string) (*quoratepb.ChangeSpec, error) {
	old, err := FindMember(cluster, name)
	if err != nil {
		return nil, err
	}
	if old.Active && old.State == membership.MarkedCorrupt {
		return nil, fmt.Errorf("%s is marked corrupt and still runs: stop it, move its data directory aside, and repeat this",
			progress.Name(old))
	}
	if old.Active {
		return nil, fmt.Errorf("%s is up and has its disk: there is nothing to reset; to move it, see `quorate member replace`",
			progress.Name(old))
	}
	return &quoratepb.ChangeSpec{Kind: "replace", Remove: []uint64{old.Id}, Add: []*quoratepb.Newcomer{{
		Name: old.Name, PeerUrls: old.PeerUrls, Learner: old.Role == quoratepb.Role_ROLE_LEARNER,
	}}}, nil
}

// Changes are changes of several members at once.
type Changes struct {
	Add, AddLearner, Update                   []MemberURLs
	Remove, Promote, Demote, Cordon, Uncordon []string // members
}

// Spec says it for a cluster as it is: names become ids.
func (c *Changes) Spec(cluster *quoratepb.Cluster) (*quoratepb.ChangeSpec, error) {
	spec := &quoratepb.ChangeSpec{Kind: "change"}
	for _, n := range c.Add {
		spec.Add = append(spec.Add, &quoratepb.Newcomer{Name: n.Name, PeerUrls: n.URLs})
	}
	for _, n := range c.AddLearner {
		spec.Add = append(spec.Add, &quoratepb.Newcomer{Name: n.Name, PeerUrls: n.URLs, Learner: true})
	}
	for _, set := range []struct {
		words []string
		ids   *[]uint64
	}{{c.Remove, &spec.Remove}, {c.Promote, &spec.Promote}, {c.Demote, &spec.Demote}, {c.Cordon, &spec.Cordon},
		{c.Uncordon, &spec.Uncordon}} {
		var err error
		if *set.ids, err = FindMembers(cluster, set.words); err != nil {
			return nil, err
		}
	}
	for _, u := range c.Update {
		m, err := FindMember(cluster, u.Name)
		if err != nil {
			return nil, err
		}
		spec.Update = append(spec.Update, &quoratepb.NewURLs{Id: m.Id, PeerUrls: u.URLs})
	}
	return spec, nil
}

// Empty reports whether nothing is to be changed.
func (c *Changes) Empty() bool {
	return len(c.Add)+len(c.AddLearner)+len(c.Update)+len(c.Remove)+len(c.Promote)+len(c.Demote)+len(c.Cordon)+
		len(c.Uncordon) == 0
}

// AsksNothing reports whether a specification leaves everything as it is.
func AsksNothing(spec *quoratepb.ChangeSpec) bool {
	return len(spec.GetAdd())+len(spec.GetRemove())+len(spec.GetPromote())+len(spec.GetDemote())+len(spec.GetUpdate())+
		len(spec.GetDrain())+len(spec.GetCordon())+len(spec.GetUncordon()) == 0
}
