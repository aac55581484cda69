package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// stopping is what is typed to stop a release and to keep its volumes.
func (c *cluster) stopping() procedure {
	return procedure{heading: restoreHeading, only: []string{"keep()", "kubectl delete statefulset"}}
}

// pastRestoration is what is typed to restore a time of a continuous backup into a release that is stopped, which then ships to
// another place.
func (c *cluster) pastRestoration(place, at, next string) procedure {
	p := c.restoration("")
	p.leaves = []string{"keep()", "kubectl delete statefulset", "db.db", "initialClusterState"}
	p.names = append(p.names, "s3://backups/prod", place, "2026-11-30T12:00:00Z", at)
	p.names = without(p.names, " prod/")
	p.values = append(p.values, shipsTo(next))
	return p
}

// without takes a pair out of names.
func without(names []string, page string) []string {
	for i := 0; i < len(names); i += 2 {
		if names[i] == page {
			return slices.Delete(names, i, i+2)
		}
	}
	return names
}

// shipsTo is a line of values.yaml.
func shipsTo(place string) string {
	return `backup: {enabled: true, url: "` + place + `", existingSecretEnv: ` + placeNeeds + `}`
}

// looking is what is typed to find the volumes of a release, of now and of before.
func (c *cluster) looking() procedure {
	return procedure{heading: wayBackHeading, only: []string{"custom-columns"}}
}

const wayBackHeading = "#### The way back"

// wayBack is what is typed to give volumes, by the number of their member, claims again, and to start the release with them.
func (c *cluster) wayBack(volumes []string, place string) procedure {
	p := procedure{heading: wayBackHeading, leaves: []string{"custom-columns"},
		names: []string{"instance: db,", "instance: " + chartName + ",",
			"-n prod db ", "-n " + c.namespace + " " + chartName + " ",
			"storageClassName: fast", "storageClassName: " + c.class, "storage: 20Gi", "storage: 1Gi",
			"upgrade db ", "upgrade " + chartName + " ", "deploy/charts", c.charts},
		values: append(c.restoration("").values, shipsTo(place))}
	p.values = slices.DeleteFunc(p.values, func(line string) bool { return strings.HasPrefix(line, "initialClusterState") })
	for number, volume := range volumes {
		p.names = append(p.names, fmt.Sprintf("data-db-quorate-%d VOLUME", number), c.claimName(number)+" "+volume)
	}
	return p
}

var volumeLine = regexp.MustCompile(`(?m)^(\S+) +(\S+Z) +(\S+) +(\S+) +(\S+)$`)

// formerVolumes are the older ones of two volumes of each member, by its number, of what the page's command has listed.
func (c *cluster) formerVolumes(listed string) ([]string, error) {
	volumes := make([]string, replicas)
	for number := range volumes {
		of := slices.DeleteFunc(volumeLine.FindAllStringSubmatch(listed, -1), func(fields []string) bool {
			return fields[1] != c.claimName(number) || fields[4] != c.namespace
		})
		if len(of) != 2 {
			return nil, fmt.Errorf("%s has %d volumes: %s", c.claimName(number), len(of), listed)
		}
		older := slices.MinFunc(of, func(a, b []string) int { return cmp.Compare(a[2], b[2]) })
		if older[5] != "Released" {
			return nil, fmt.Errorf("the volume %s is %s", older[3], older[5])
		}
		volumes[number] = older[3]
	}
	return volumes, nil
}

// chartRestorePast ships, restores a time into the release, whose state then is that of the time, and goes back to the volumes
// from before, whose state is that in which the release was stopped. Clients write all the time.
func chartRestorePast(ctx context.Context, c *cluster) error {
	place, before, err := c.shipMoment(ctx)
	if err != nil {
		return err
	}
	stopped, err := c.stopped(ctx)
	if err != nil {
		return err
	}
	next := strings.Replace(place, "/kept?", "/next?", 1)
	said, err := c.follow(ctx, c.pastRestoration(place, before.at, next))
	if err != nil {
		return err
	}
	if err := errors.Join(c.ready(ctx), c.voters(ctx, replicas)); err != nil {
		return fmt.Errorf("%w; the commands said: %s", err, said)
	}
	later := maps.Clone(stopped)
	maps.DeleteFunc(later, func(key string, _ int64) bool { return before.acked[key] > 0 })
	if len(later) < someWrites {
		return fmt.Errorf("only %d writes were acknowledged after the time", len(later))
	}
	if err := c.wentBack(ctx, before.acked, later); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	if err := c.reaches(ctx, c.writer.newest(), false); err != nil {
		return err
	}
	return c.goBack(ctx, place, stopped)
}

// shipMoment lets a release ship, and holds the clients for a moment. More writes follow, and all of them can be restored.
func (c *cluster) shipMoment(ctx context.Context) (place string, at moment, err error) {
	if place, err = c.newPlace(ctx); err != nil {
		return "", at, err
	}
	if err := c.upgrade(ctx, "backup.enabled=true", "backup.url="+place, "backup.existingSecretEnv="+placeNeeds); err != nil {
		return "", at, err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return "", at, err
	}
	if at, err = c.moment(ctx); err != nil {
		return "", at, err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return "", at, err
	}
	return place, at, c.reaches(ctx, c.writer.newest(), false)
}

// stopped stops the release, and returns what was acknowledged until then.
func (c *cluster) stopped(ctx context.Context) (map[string]int64, error) {
	_, err := c.follow(ctx, c.stopping())
	return c.writer.keys(), err
}

// goBack gives up what was written since a restore: the release gets the volumes from before again, and has all that was
// acknowledged until it was stopped. It ships on to the former place.
func (c *cluster) goBack(ctx context.Context, place string, until map[string]int64) error {
	restored, err := c.stopped(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(restored, func(key string, _ int64) bool { return until[key] > 0 })
	c.writer.giveUpThese(restored)
	listed, err := c.follow(ctx, c.looking())
	if err != nil {
		return err
	}
	volumes, err := c.formerVolumes(listed)
	if err != nil {
		return err
	}
	if _, err := c.follow(ctx, c.wayBack(volumes, place)); err != nil {
		return err
	}
	if err := errors.Join(c.ready(ctx), c.voters(ctx, replicas)); err != nil {
		return err
	}
	if len(restored) < someWrites {
		return fmt.Errorf("only %d writes were acknowledged since the restore", len(restored))
	}
	if err := c.wentBack(ctx, until, restored); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	return c.reaches(ctx, c.writer.newest(), false)
}
