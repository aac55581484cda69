package explore

import (
	"maps"
	"slices"

	"github.com/quorate/quorate/internal/model"
)

const (
	memberA uint8 = 1 << iota
	memberB
	memberC
	memberD
	memberE
)

const (
	three = memberA | memberB | memberC
	four  = three | memberD
	five  = four | memberE
)

var (
	fixedClusters = []string{"n3", "n4", "n5"}
	changing3     = []string{"joint3", "joint3b"}
	withLearner   = []string{"n3learner", "3to4"}
	anyChange     = []string{"3to4", "4to3", "4to5", "5to4", "3to2", "2to3", "rollback", "addremove2", "addremove4",
		"joint3",
		"joint3b", "n3learner"}
	withLeases = []string{"lease3", "lease5"}
	recovering = []string{"recover3", "recover4", "recover5"}
	withDisks  = []string{"disks3", "disks4", "disks5"}
	withLiars  = []string{"liar4", "liar5"}
)

// everywhere returns the clusters on which the full protocol is walked.
func everywhere() []string {
	return slices.Concat(fixedClusters, anyChange, withLeases, recovering, withDisks, withLiars)
}

// Scenarios returns the names of the clusters for walks.
func Scenarios() []string { return slices.Sorted(maps.Keys(scenarios)) }

// scenarios are the clusters of the walks. Footprints are drawn per walk.
var scenarios = map[string]*model.Scenario{
	"n3":        fixed("n3", 3, model.Config{Old: three}),
	"n4":        fixed("n4", 4, model.Config{Old: four}),
	"n5":        fixed("n5", 5, model.Config{Old: five}),
	"n3learner": fixed("n3learner", 4, model.Config{Old: three, Learners: memberD}),
	"3to4":      oneChange("3to4", 4, model.Config{Old: three, Learners: memberD}, model.Config{Old: four}),
	"4to3":      oneChange("4to3", 4, model.Config{Old: four}, model.Config{Old: three}),
	"4to5":      oneChange("4to5", 5, model.Config{Old: four, Learners: memberE}, model.Config{Old: five}),
	"5to4":      oneChange("5to4", 5, model.Config{Old: five}, model.Config{Old: four}),
	"3to2":      oneChange("3to2", 3, model.Config{Old: three}, model.Config{Old: memberA | memberB}),
	"2to3":      oneChange("2to3", 3, model.Config{Old: memberA | memberB, Learners: memberC}, model.Config{Old: three}),
	// Changes compete: one is rolled back for another one, and undone again.
	"rollback": {Name: "rollback", Members: 5, Configs: []model.Config{
		{Old: three, Learners: memberD | memberE}, {Old: four, Learners: memberE},
		{Old: three | memberE, Learners: memberD}, {Old: memberA | memberB, Learners: memberD | memberE},
		{Old: memberB | memberC, Learners: memberD | memberE}}, Next: [][]int8{{1, 2, 3, 4}, {0}, {0}, {0}, {0}}},
	// An addition competes with a removal, from an even size.
	"addremove2": {Name: "addremove2", Members: 3, Configs: []model.Config{
		{Old: memberA | memberB, Learners: memberC}, {Old: three}, {Old: memberA, Learners: memberC},
		{Old: memberB, Learners: memberC}}, Next: [][]int8{{1, 2, 3}, {0}, {0}, {0}}},
	"addremove4": {Name: "addremove4", Members: 5, Configs: []model.Config{
		{Old: four, Learners: memberE}, {Old: five}, {Old: four &^ memberA, Learners: memberE},
		{Old: three, Learners: memberE}}, Next: [][]int8{{1, 2, 3}, {0}, {0}, {0}}},
	"joint3": {Name: "joint3", Members: 4, Configs: []model.Config{
		{Old: three, Learners: memberD}, {Old: three, New: four &^ memberA}, {Old: four &^ memberA}},
		Next: [][]int8{{1}, {2}, {}}},
	// One common voter.
	"joint3b": {Name: "joint3b", Members: 5, Configs: []model.Config{
		{Old: three, Learners: memberD | memberE}, {Old: three, New: memberA | memberD | memberE},
		{Old: memberA | memberD | memberE}}, Next: [][]int8{{1}, {2}, {}}},
	"lease3":   leased("lease3", 3, model.Config{Old: three}),
	"lease5":   leased("lease5", 5, model.Config{Old: five}),
	"disks3":   disks("disks3", 3, model.Config{Old: three}),
	"disks4":   disks("disks4", 4, model.Config{Old: four}),
	"disks5":   disks("disks5", 5, model.Config{Old: five}),
	"liar4":    lying("liar4", 4, model.Config{Old: four}),
	"liar5":    lying("liar5", 5, model.Config{Old: five}),
	"recover3": recovery("recover3", 3, three),
	"recover4": recovery("recover4", 4, four),
	"recover5": recovery("recover5", 5, five),
}

func fixed(name string, members int, c model.Config) *model.Scenario {
	return &model.Scenario{Name: name, Members: members, Configs: []model.Config{c}, Next: [][]int8{{}}}
}

// oneChange is a scenario with a single change and its reverse.
func oneChange(name string, members int, from, to model.Config) *model.Scenario {
	return &model.Scenario{Name: name, Members: members, Configs: []model.Config{from, to, from},
		Next: [][]int8{{1}, {2}, {1}}}
}

// leased is a scenario whose members promise leases of different lengths.
func leased(name string, members int, c model.Config) *model.Scenario {
	s := fixed(name, members, c)
	s.Patience = [model.MaxMembers]int8{5, 3, 4, 3, 4}
	return s
}

// lying is a scenario with a client that sends two payloads under one id. It needs four voters: with fewer, a superquorum and a
// recovery quorum are all of the voters that are asked, so that two payloads cannot compete.
func lying(name string, members int, c model.Config) *model.Scenario {
	s := fixed(name, members, c)
	s.Lies[0] = 1
	return s
}

func disks(name string, members int, c model.Config) *model.Scenario {
	s := fixed(name, members, c)
	s.Disks = true
	return s
}

func recovery(name string, members int, voters uint8) *model.Scenario {
	s := &model.Scenario{Name: name, Members: members, Configs: []model.Config{{Old: voters}}, Next: [][]int8{{}},
		Recovers: true}
	for i := range members {
		s.Configs, s.Next = append(s.Configs, model.Config{Old: 1 << i}), append(s.Next, nil)
	}
	return s
}
