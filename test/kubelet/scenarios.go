package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/quorate/quorate/test/kubelet/claims"
)

// A scenario happens to a cluster that is whole, while writes run. It returns once it is over; then the cluster must become
// whole again, and no acknowledged write may be lost.
type scenario struct {
	name    string
	subject subject
	class   string
	run     func(context.Context, *cluster) error
}

func scenarios(away time.Duration) []scenario {
	set, release, custom := statefulSet{}, chart{}, operated{}
	all := append(everywhere(set, away), []scenario{
		{"roll a version and back", set, claims.Local, roll},
		{"roll 1.0.0, this build, and back", statefulSet{formerBuild}, claims.Local,
			rollBuilds(form{setVersion, setBack, formerBuild})},
		{"delete a pod by force whose process lives on", set, claims.Network, forceDelete},
		{"resize", set, claims.Local, resize},
		{"delete a claim by hand", set, claims.Local, deleteClaim},
		{"wipe a disk", set, claims.Local, wipeDisk},
	}...)
	all = append(append(all, everywhere(release, away)...), []scenario{
		{"roll a version and back", release, claims.Local, chartRoll},
		{"roll 1.0.0, this build, and back", chart{tag: formerTag}, claims.Local,
			rollBuilds(form{chartSet, chartBack, formerTag})},
		{"scale 3, 5, 3", release, claims.Local, chartScale},
		{"delete a pod by force whose process lives on", release, claims.Network, forceDelete},
		{"delete a claim by hand", release, claims.Local, deleteClaim},
		{"lose a node for ever, with its disk", release, claims.Local, chartLoseNode},
		{"lose a node for ever, with disks of the network", release, claims.Network, chartOutOfService},
		{"grow the disks", release, claims.Local, chartGrow},
		{"lose two of three nodes for ever, and recover", chart{tls: true, users: true}, claims.Local, chartLoseQuorum},
		{"restore into a release", chart{tls: true, users: true}, claims.Local, chartRestore},
		{"a continuous backup into a release, and the way back", chart{tls: true, users: true}, claims.Local, chartRestorePast},
		{"prove a backup in a pod", chart{users: true}, claims.Local, chartProve},
		{"change root's password", chart{users: true}, claims.Local, chartPassword},
		{"encrypt the disks, replace their keys, lose a pod and a disk", encryptedChart{chart{users: true}}, claims.Local,
			chartDisks},
		{"rotate certificates, then their authority", chart{tls: true}, claims.Local, chartRotate},
		{"kubectl quorate", chart{users: true}, claims.Local, kubectlQuorate},
		{"back up, lose the shipping member's node, restore to another release", chart{users: true}, claims.Local, chartBackup},
	}...)
	for _, version := range formerVersions {
		all = append(all, scenario{"take over etcd " + version + ", and go back", former{version}, claims.Local, takeOver})
	}
	return append(append(all, everywhere(custom, away)...), []scenario{
		{"roll a version and back", custom, claims.Local, operatedRoll},
		{"roll 1.0.0, this build, and back", operated{version: formerBuild}, claims.Local,
			rollBuilds(form{operatedSet, operatedBack, formerBuild})},
		{"scale 3, 5, 3", custom, claims.Local, operatedScale},
		{"resize", custom, claims.Local, operatedResize},
		{"delete a pod by force whose process lives on", custom, claims.Network, forceDelete},
		{"delete a claim by hand", custom, claims.Local, operatedClaim},
		{"lose a node for ever", custom, claims.Local, loseNode},
		{"lose a node for ever, of 1.0.0", operated{version: formerBuild, users: true}, claims.Local, loseNode},
		{"lose two of three nodes for ever, and consent", custom, claims.Local, loseQuorum},
		{"lose three of five nodes for ever, and recover by hand", operated{tls: true}, claims.Local, recoverByHand},
		{"lose three of five nodes for ever and the survivors' claims, and recover by hand", operated{tls: true}, claims.Local,
			recoverTerminating},
		{"rotate certificates", operated{tls: true}, claims.Local, operatedRotate},
		{"kubectl quorate", operated{tls: true, users: true}, claims.Local, kubectlQuorate},
		{"back up, lose the shipping member's node, restore to another cluster", operated{tls: true, users: true}, claims.Local,
			operatedBackup},
		{"kill the operator at every step of a restore", custom, claims.Local, killInRestore},
		{"kill the operator again and again", custom, claims.Local, killOperator},
		{"kill the operator at every step", custom, claims.Local, killAtSteps},
		{"two operators that both act", custom, claims.Local, twoOperators},
	}...)
}

// everywhere are the scenarios that happen to each subject.
func everywhere(s subject, away time.Duration) []scenario {
	write := func(ctx context.Context, c *cluster) error { return c.progress(ctx, someWrites) }
	silent := func(ctx context.Context, c *cluster) error { return apiAway(ctx, c, away) }
	return []scenario{
		{"create", s, claims.Local, write},
		{"kill the leader's node", s, claims.Local, killNode},
		{"freeze the leader's node", s, claims.Local, freezeNode},
		{"cut the leader's node off", s, claims.Local, cutNode},
		{"drain all nodes in turn", s, claims.Network, drainAll},
		{"API server away", s, claims.Local, silent},
		{"all nodes lose power", s, claims.Local, loseAll},
	}
}

// title is the scenario's name, with that of its subject.
func (s scenario) title() string { return s.subject.String() + ": " + s.name }

// perform runs the scenarios that match, and prints the table. It has an error if one failed.
func perform(ctx context.Context, g *ground, away time.Duration, matches *regexp.Regexp) error {
	var rows []row
	ran, failed := 0, 0
	for i, s := range scenarios(away) {
		if !matches.MatchString(s.title()) || ctx.Err() != nil {
			continue
		}
		if missing := s.subject.missing(g); missing != "" {
			fmt.Fprintf(os.Stderr, "%s: not run, for want of %s\n", s.title(), missing)
			rows = append(rows, row{name: s.title(), missing: missing})
			continue
		}
		fmt.Fprintf(os.Stderr, "%s …\n", s.title())
		ran++
		r := performOne(ctx, g, fmt.Sprintf("s%d", i), s)
		if r.failed != nil {
			failed++
			g.restore(ctx)
		}
		fmt.Fprintln(os.Stderr, r)
		rows = append(rows, r)
	}
	printTable(os.Stdout, rows)
	if g.operatorInstalled {
		if err := g.tellUnused(ctx, os.Stderr); err != nil {
			return fmt.Errorf("the rights of the operator: %w", err)
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed > 0:
		return fmt.Errorf("%d of %d scenarios failed", failed, ran)
	case len(rows) == 0:
		return fmt.Errorf("no scenario matches %s", matches)
	}
	return nil
}

func performOne(ctx context.Context, g *ground, namespace string, s scenario) row {
	c := &cluster{ground: g, subject: s.subject, namespace: namespace, class: s.class}
	r := row{name: s.title()}
	began := time.Now()
	if r.failed = c.create(ctx, s.class); r.failed != nil {
		return r
	}
	if s.name != "create" {
		began = time.Now()
	}
	r.failed = s.run(ctx, c)
	if r.failed == nil {
		r.failed = c.ready(ctx)
	}
	if r.failed == nil {
		r.failed = c.progress(ctx, someWrites)
	}
	r.took = time.Since(began)
	tally, err := c.writer.stop(ctx)
	r.tally = tally
	switch {
	case r.failed != nil:
	case err != nil:
		r.failed = err
	case tally.lost > 0:
		r.failed = fmt.Errorf("%d acknowledged writes are lost", tally.lost)
	default:
		r.failed = errors.Join(c.judge(c), c.remove(ctx), c.shrink(ctx))
	}
	return r
}
