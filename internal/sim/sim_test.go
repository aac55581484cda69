package sim_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/sim"
	"github.com/quorate/quorate/internal/sim/breaks"
	"github.com/quorate/quorate/internal/sim/stores"
)

// Ensure that the laws hold for a few dozen drawn clusters.
func TestRun_seeds(t *testing.T) {
	seeds := uint64(30)
	if testing.Short() {
		seeds = 15
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			mustHold(t, sim.Options{Seed: seed})
		})
	}
}

// Ensure that the laws hold under each fault by itself.
func TestRun_nemeses(t *testing.T) {
	o := sim.Options{Seed: 7, Members: 3, Duration: 15 * time.Second}
	for _, n := range sim.Nemeses() {
		t.Run(n.Name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Nemesis = n.Name
			mustHold(t, o)
		})
	}
}

// Ensure that the laws hold for members whose stores are Pebble.
func TestRun_pebble(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			o := sim.Options{Seed: seed, Nemesis: "all", Engine: stores.Pebble, Duration: 15 * time.Second}
			o.Encrypts = seed%2 == 1
			mustHold(t, o)
		})
	}
}

// Ensure that six false alarms do not come back: a log that was truncated while two requests of one write were under way, a
// removed member that leads for one step because it does not know that the change in its log has committed, a process that asks
// for a second time to replace a member, a level that is raised again after a member has joined, a proposal that is repeated
// after the end of its session, and a base that retention removes since another one of its day is there, which nobody reported.
func TestRun_falseAlarms(t *testing.T) {
	for _, seed := range []uint64{1795307543349443206, 1795307598853520126, 20513, 7400027, 90000474} {
		mustHold(t, sim.Options{Seed: seed, Nemesis: "all"})
	}
	mustHold(t, sim.Options{Seed: 7600052})
	mustHold(t, sim.Options{Seed: 28970016, Members: 3, Nemesis: "backup,crash,partition,transfer"})
}

// Ensure that a removed member of an earlier build, to which the leader still sends entries, ends as removed when it meets a
// level that it does not know.
func TestRun_removedEarlierBuild(t *testing.T) {
	mustHold(t, sim.Options{Seed: 1795399205798379976, Nemesis: "all"})
	mustHold(t, sim.Options{Seed: 27630095, Nemesis: "all"}) // it refuses a snapshot
}

// Ensure that members and the model agree on a level that rises after a change by protocol activate has removed a member.
func TestRun_levelAfterActivate(t *testing.T) {
	mustHold(t, sim.Options{Seed: 7500348, Nemesis: "all"})
}

func mustHold(t *testing.T, o sim.Options) {
	t.Helper()
	report, err := sim.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Violations {
		t.Errorf("seed %d: %s\n%v", o.Seed, report.Plan, v)
	}
	if len(report.Violations) == 0 && report.Counts.Answered == 0 {
		t.Errorf("seed %d: %s\nno operation was answered", o.Seed, report.Plan)
	}
}

// Ensure that members of two epochs, which ask each other for their identities, do not do that ever more often: a run would not
// end.
func TestRun_endsAfterRecoveries(t *testing.T) {
	for _, seed := range []uint64{3, 4} {
		mustHold(t, sim.Options{Seed: seed, Nemesis: "recover"})
	}
}

// Ensure that one seed gives the same events each time, byte for byte, also if many messages wait on narrow links when the
// faults end.
func TestRun_deterministic(t *testing.T) {
	for _, o := range []sim.Options{
		{Seed: 100}, {Seed: 101},
		{Seed: 5003, Nemesis: "narrow"}, {Seed: 5009, Nemesis: "narrow"},
		{Seed: 103, Nemesis: "all"}, {Seed: 104, Nemesis: "all"},
	} {
		t.Run(fmt.Sprint("seed ", o.Seed), func(t *testing.T) {
			t.Parallel()
			o.Duration = 15 * time.Second
			var first, second bytes.Buffer
			o.Trace = &first
			a, err := sim.Run(o)
			if err != nil {
				t.Fatal(err)
			}
			o.Trace = &second
			b, err := sim.Run(o)
			if err != nil {
				t.Fatal(err)
			}
			if a.TraceSum != b.TraceSum || !bytes.Equal(first.Bytes(), second.Bytes()) {
				t.Errorf("two runs differ: %d lines and %d lines, first at\n%s", a.TraceLines, b.TraceLines,
					firstDifference(first.String(), second.String()))
			}
		})
	}
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return "the end"
}

// maxControlSeeds bounds the seeds that a negative control may take until a checker notices it.
const maxControlSeeds = 60

// Ensure that each broken law is noticed, as the table says: a checker that stays silent here proves nothing elsewhere.
func TestRun_negativeControls(t *testing.T) {
	best := map[string]sim.Options{
		"commit-old-term":       {Members: 5, Nemesis: "crash-all", Seed: 48},
		"count-learners":        {Members: 4, Nemesis: "membership"},
		"vote-twice":            {Members: 4, Nemesis: "crash-all"},
		"ack-before-durable":    {Members: 3, Nemesis: "crash"},
		"skip-read-round":       {Members: 3, Nemesis: "pause,partition", Load: sim.LoadReads, Seed: 24},
		"lying-disk":            {Nemesis: "crash-all"},
		"lying-log":             {Nemesis: "crash-all"},
		"lying-engine":          {Nemesis: "crash-all", Engine: stores.Pebble},
		"change-in-old-term":    {Members: 3, Nemesis: "reconfig-crash", Protocol: "joint", Seed: 11},
		"two-changes":           {Members: 3, Nemesis: "reconfig-crash", Protocol: "single", Seed: 7},
		"count-self":            {Members: 4, Nemesis: "reconfig-crash", Protocol: "joint", Seed: 7},
		"union-of-joint":        {Members: 5, Nemesis: "reconfig-crash", Protocol: "joint"},
		"durable-too-soon":      {Members: 3, Nemesis: "crash"},
		"log-any-order":         {Members: 3, Nemesis: "none"},
		"infer-old-term":        {Members: 3, Nemesis: "pause,transfer", Seed: 145},
		"reuse-config-ids":      {Members: 3, Nemesis: "reconfig-crash"},
		"witness-volatile":      {Members: 5, Nemesis: "crash-all"},
		"recover-more":          {Members: 5, Nemesis: "last-word,delay", Seed: 210},
		"recover-any-payload":   {Members: 5, Nemesis: "liar,last-word,transfer,delay", Seed: 113},
		"leader-no-log-order":   {Members: 5, Nemesis: "none", Seed: 3},
		"no-log-keys":           {Members: 4, Nemesis: "crash,transfer"},
		"superquorum-less":      {Members: 7, Nemesis: "last-word,delay", Seed: 1018},
		"proposer-any-attempt":  {Members: 7, Nemesis: "last-word", Seed: 2020},
		"read-past-pool":        {Members: 5, Nemesis: "last-word,delay", Seed: 291},
		"vote-without":          {Members: 5, Nemesis: "last-word,delay", Seed: 93},
		"truncate-keeps-writes": {Members: 3, Nemesis: "overwrite", Seed: 19},
		"truncate-keeps-bound":  {Members: 5, Nemesis: "overwrite", Seed: 30},
		"read-commit-index":     {Members: 3, Nemesis: "crash", Seed: 2},
		"read-forgets-answers":  {Members: 3, Nemesis: "slowdisk", Load: sim.LoadReads, Duration: 20 * time.Second, Seed: 4},
		"read-below-noop":       {Members: 5, Nemesis: "last-word,delay", Load: sim.LoadReads, Seed: 385},
		"read-old-ends":         {Members: 3, Nemesis: "delay,slowdisk", Load: sim.LoadReads, Duration: 20 * time.Second},
		"read-while-changing":   {Members: 3, Nemesis: "membership,slowdisk", Load: sim.LoadReads, Protocol: "joint-early", Seed: 4},
		"tell-core-last":        {Members: 3, Nemesis: "slowdisk", Load: sim.LoadReads, Duration: 20 * time.Second, Seed: 25},
		"pack-forgets":          {Members: 3, Nemesis: "dup,transfer"},
		"first-author":          {Members: 3, Nemesis: "none"},
		"late-moments":          {Members: 3, Nemesis: "none", Seed: 3},
		"over-quota":            {Members: 5, Nemesis: "limits", Seed: 3},
		"evaluate-quota":        {Members: 5, Nemesis: "limits", Seed: 3},
		"deleted-counts":        {Members: 3, Nemesis: "limits"},
		"counts-of-own-size":    {Members: 5, Nemesis: "limits", Seed: 2},
		"heads-of-own-number":   {Members: 3, Nemesis: "audit", Seed: 3},
		"early-clock":           {Members: 3, Nemesis: "none", Seed: 1<<40 + 6},
		"loss-by-rounds":        {Members: 3, Nemesis: "narrow"},
		"ignore-binding":        {Members: 3, Nemesis: "wipe", Seed: 4},
		"count-unbound":         {Members: 3, Nemesis: "found-majority"},
		"ignore-lives":          {Members: 3, Nemesis: "roll-back", Seed: 7},
		"obey-other-history":    {Members: 3, Nemesis: "other-history"},
		"found-by-majority":     {Members: 3, Nemesis: "wipe-most", Seed: 8},
		"forget-exclusion":      {Members: 3, Nemesis: "found,wipe", Seed: 3},
		"believe-anybody":       {Members: 3, Nemesis: "strangers"},
		"hear-non-members":      {Members: 3, Nemesis: "strangers", Seed: 2},
		"any-answer-counts":     {Members: 3, Nemesis: "mistype", Duration: 25 * time.Second},
		"moves-untold":          {Members: 3, Nemesis: "move", Duration: 20 * time.Second, Seed: 4},
		"deaf-to-operators":     {Members: 3, Nemesis: "move", Duration: 20 * time.Second, Seed: 5},
		"asks-nobody":           {Members: 5, Nemesis: "move", Duration: 40 * time.Second, Seed: 59},
		"removed-untold":        {Members: 5, Nemesis: "membership,partition,crash,move", Seed: 2},
		"refused-is-gone":       {Members: 2, Nemesis: "move", Duration: 40 * time.Second, Seed: 4},
		"remember-ghosts":       {Members: 3, Nemesis: "recover-by-mistake,partition,pause", Duration: 40 * time.Second, Seed: 12},
		"trust-denial":          {Members: 3, Nemesis: "forget", Seed: 3},
		"serve-superseded":      {Members: 3, Nemesis: "recover", Seed: 7},
		"believe-stamps":        {Members: 5, Nemesis: "skew", Seed: 7},
		"stay-paused":           {Members: 5, Nemesis: "none", Seed: 7},
		"job-twice":             {Members: 3, Nemesis: "jobs"},
		"care-shrinks":          {Members: 3, Nemesis: "jobs"},
		"job-by-clocks":         {Members: 3, Nemesis: "jobs,dates,transfer", Seed: 4},
		"care-by-clocks":        {Members: 3, Nemesis: "jobs,dates", Duration: time.Minute, Seed: 54},
		"join-takes-votes":      {Members: 3, Nemesis: "join"},
		"reset-the-silent":      {Members: 5, Nemesis: "impatient"},
		"no-sessions":           {Members: 3, Nemesis: "pause"},
		"early-leases":          {Nemesis: "none"},
		"hasty-level":           {Members: 3, Nemesis: "upgrade", Seed: 5},
		"level-stays":           {Members: 3, Nemesis: "none"},
		"ignore-findings":       {Members: 3, Nemesis: "upgrade", Seed: 26},
		"unheld-downgrade":      {Members: 3, Nemesis: "upgrade"},
		"downgrade-keeps-soak":  {Members: 3, Nemesis: "upgrade", Seed: 17},
		"downgrade-stays":       {Members: 3, Nemesis: "upgrade", Duration: 12 * time.Second, Seed: 18},
		"unstopped-leases":      {Members: 3, Nemesis: "hung-store"},
		"parts-of-own-size":     {Members: 3, Nemesis: "none", Seed: 4},
		"session-by-id":         {Members: 3, Nemesis: "none"},
		"lost-answers":          {Members: 3, Nemesis: "none", Seed: 4},
		"kept-turns":            {Members: 3, Nemesis: "none"},
		"untold-clients":        {Members: 3, Nemesis: "partition,transfer"},
		"kept-silent":           {Members: 3, Nemesis: "crash"},
		"stay-at-endpoints":     {Members: 3, Nemesis: "jobs,join,membership", Duration: time.Minute, Seed: 216},
		"hasty-client":          {Members: 7, Nemesis: "last-word", Seed: 507},
		"read-txn-free":         {Members: 3, Nemesis: "auth"},
		"apply-unpermitted":     {Members: 5, Nemesis: "auth", Seed: 3},
		"evaluate-unpermitted":  {Members: 5, Nemesis: "auth", Seed: 10},
		"read-early":            {Members: 3, Nemesis: "auth,slowdisk,delay", Seed: 9},
		"former-passwords":      {Members: 3, Nemesis: "auth"},
		"ungated":               {Members: 3, Nemesis: "upgrade"},
		"ship-early-ack":        {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 7},
		"ship-silent-gap":       {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 17},
		"ship-skips":            {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 7},
		"keep-less":             {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 5},
		"prune-young-files":     {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 18},
		"prune-named-files":     {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 5},
		"prune-all-log":         {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 5},
		"ship-crowds":           {Members: 3, Nemesis: "backup", Seed: 8},
		"ship-to-former":        {Members: 3, Nemesis: "backup,transfer", Seed: 2},
		"prove-lost":            {Members: 3, Nemesis: "backup,transfer", Seed: 28890031},
		"ship-believes":         {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 28930117},
		"prove-skips":           {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 28995069},
		"prove-apart":           {Members: 3, Nemesis: "backup,crash,partition,transfer", Seed: 7},
		"lossy-watch":           {Nemesis: "none"},
	}
	for _, b := range breaks.All() {
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			o := best[b.Name]
			o.Break = b.Name
			o.Seed = max(1, o.Seed)
			for last := o.Seed + maxControlSeeds; o.Seed < last; o.Seed++ {
				report, err := sim.Run(o)
				if err != nil {
					t.Fatal(err)
				}
				if len(report.Violations) > 0 {
					first := report.Violations[0]
					t.Logf("noticed by seed %d: %v", o.Seed, first)
					if !slices.Contains(strings.Split(b.Law, ", "), first.Property) {
						t.Errorf("noticed as %s, and the table says %s", first.Property, b.Law)
					}
					return
				}
			}
			t.Errorf("%s (%s): no checker noticed in %d seeds", b.Name, b.About, maxControlSeeds)
		})
	}
}

// Ensure that an unknown fault, control or engine is an error.
func TestRun_unknownNames(t *testing.T) {
	for _, o := range []sim.Options{{Nemesis: "gremlin"}, {Break: "everything"}, {Engine: "rocks"}} {
		if _, err := sim.Run(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
