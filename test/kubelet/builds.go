package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// formerBuild is the release that members are rolled from and back to. ./run builds it from its tag, under two names: the chart
// takes the first one for that release, and refuses it.
const (
	formerBuild = "1.0.0"
	formerTag   = "former"
)

// formerMissing says that the ground lacks the release.
func (g *ground) formerMissing() string {
	if _, ok := g.images["quorate:"+formerBuild]; !ok {
		return fmt.Sprintf("release %s: the clone has no tag v%[1]s", formerBuild)
	}
	return ""
}

// A form is how versions are rolled in one kind of cluster.
type form struct {
	// set lets all members have a version, and waits until they do.
	set func(ctx context.Context, c *cluster, version string) error
	// back asks for the former release when its members would not start any more, and looks at what comes of it.
	back func(ctx context.Context, c *cluster) error
	// tag is the former release's.
	tag string
}

// rollBuilds rolls this build out over the former release, back, and out again, while the feature level is held. Then it rises,
// and the way back must be closed without harm.
func rollBuilds(f form) func(context.Context, *cluster) error {
	return func(ctx context.Context, c *cluster) error {
		own, err := buildOf(ctx, c.quorate)
		if err != nil {
			return err
		}
		if err := c.run(ctx, formerBuild, 1); err != nil {
			return err
		}
		if _, err := c.quorateCommand(ctx, "upgrade", "hold"); err != nil {
			return err
		}
		for _, next := range []struct{ version, build string }{{thisTag, own}, {f.tag, formerBuild}, {thisTag, own}} {
			if err := until(ctx, readyTime, "a member may be restarted", func() error {
				_, err := c.quorateCommand(ctx, "upgrade", "plan", "--to", next.build)
				return err
			}); err != nil {
				return err
			}
			if err := f.set(ctx, c, next.version); err != nil {
				return err
			}
			if err := c.run(ctx, next.build, 1); err != nil {
				return err
			}
			if err := c.heldBack(ctx); err != nil {
				return err
			}
		}
		if _, err := c.quorateCommand(ctx, "upgrade", "finalize", "--yes"); err != nil {
			return err
		}
		if err := c.run(ctx, own, 2); err != nil {
			return err
		}
		if err := f.back(ctx, c); err != nil {
			return err
		}
		if err := f.set(ctx, c, thisTag); err != nil {
			return err
		}
		return c.run(ctx, own, 2)
	}
}

// run waits until all members run a build, and the cluster has a feature level.
func (c *cluster) run(ctx context.Context, build string, level int) error {
	what := fmt.Sprintf("all members run build %s, at feature level %d", build, level)
	return until(ctx, time.Minute, what, func() error {
		out, err := c.quorateCommand(ctx, "upgrade", "status", "-o", "json")
		if err != nil {
			return err
		}
		var status struct {
			Active  int
			Members []struct{ Name, Build string }
		}
		if err := json.Unmarshal([]byte(out), &status); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		if status.Active != level || len(status.Members) != replicas {
			return fmt.Errorf("level %d, %d members", status.Active, len(status.Members))
		}
		for _, m := range status.Members {
			if m.Build != build {
				return fmt.Errorf("%s runs %s", m.Name, m.Build)
			}
		}
		return nil
	})
}

// heldBack wants what needs feature level 2 to be refused: by members of the former release, since they do not know it, and by
// those of this build with the reason.
func (c *cluster) heldBack(ctx context.Context) error {
	out, err := c.quorateCommand(ctx, "limit", "set", "some", "--prefix", "/limited/", "--quota-keys", "10")
	if err == nil {
		return fmt.Errorf("below feature level 2 a limit was set: %s", out)
	}
	if !strings.Contains(err.Error(), "feature level 2") && !strings.Contains(err.Error(), "unknown service") {
		return fmt.Errorf("a limit below feature level 2: %w", err)
	}
	return nil
}

// buildOf is the build of a program.
func buildOf(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program, "version", "-o", "json").Output()
	if err != nil {
		return "", err
	}
	var version struct{ Version string }
	return version.Version, json.Unmarshal(out, &version)
}

// tooLow is what a member's log says whose build does not know the feature level.
const tooLow = "the cluster is at feature level 2, and this build knows 1 at most"

// stuck waits until the last pod of a StatefulSet has a build that does not start, and wants the others to serve, and to be
// left alone.
func (c *cluster) stuck(ctx context.Context, before []corev1.Pod) error {
	if err := c.logged(ctx, replicas-1, tooLow); err != nil {
		return err
	}
	if err := c.progress(ctx, 5*someWrites); err != nil {
		return err
	}
	return c.same(ctx, before[:replicas-1])
}

// same wants pods to be there and ready which were there before.
func (c *cluster) same(ctx context.Context, before []corev1.Pod) error {
	now, err := c.pods(ctx)
	if err != nil {
		return err
	}
	for _, old := range before {
		kept := false
		for _, p := range now {
			kept = kept || p.UID == old.UID && isReady(&p) && p.DeletionTimestamp == nil && starts(&p) == starts(&old)
		}
		if !kept {
			return fmt.Errorf("%s was stopped", old.Name)
		}
	}
	return nil
}

// starts is how often the container of a pod was started again.
func starts(p *corev1.Pod) int32 {
	if len(p.Status.ContainerStatuses) == 0 {
		return 0
	}
	return p.Status.ContainerStatuses[0].RestartCount
}

// setBack sets the image of the former release in a StatefulSet.
func setBack(ctx context.Context, c *cluster) error {
	before, err := c.pods(ctx)
	if err != nil {
		return err
	}
	if err := c.setImage(ctx, "quorate:"+formerBuild); err != nil {
		return err
	}
	return c.stuck(ctx, before)
}

// formerValues are those by which the chart's members understand their flags though they are of the former release.
var formerValues = []string{"scaling.job=never", "extraEnvVars[0].name=ETCD_JOIN,extraEnvVars[0].value="}

// chartSet upgrades the release to an image.
func chartSet(ctx context.Context, c *cluster, version string) error {
	if err := c.helm(ctx, append([]string{"upgrade"}, c.chartValues(c.class, "image.tag="+version)...)...); err != nil {
		return err
	}
	return c.ready(ctx)
}

// chartBack wants the chart to refuse the former release by its tag, and rolls back to the first revision, where it has a tag
// that tells nothing. Helm gives up.
func chartBack(ctx context.Context, c *cluster) error {
	before, err := c.pods(ctx)
	if err != nil {
		return err
	}
	err = c.helm(ctx, append([]string{"upgrade"}, c.chartValues(c.class, "image.tag="+formerBuild)...)...)
	if err == nil || !strings.Contains(err.Error(), "image.tag: ") {
		return fmt.Errorf("the chart does not refuse release %s: %w", formerBuild, err)
	}
	if err := c.same(ctx, before); err != nil {
		return err
	}
	err = c.helm(ctx, "rollback", chartName, "1", "-n", c.namespace, "--wait", "--timeout", "5s")
	if err == nil {
		return errors.New("helm rolled back to a build that does not start")
	}
	return c.stuck(ctx, before)
}

func operatedSet(ctx context.Context, c *cluster, version string) error {
	if err := c.want(ctx, func(w *wanted) { w.version = version }); err != nil {
		return err
	}
	return c.ready(ctx)
}

// operatedBack asks the operator for the former release: it must refuse that, and stop no member.
func operatedBack(ctx context.Context, c *cluster) error {
	before, err := c.pods(ctx)
	if err != nil {
		return err
	}
	if err := c.want(ctx, func(w *wanted) { w.version = formerBuild }); err != nil {
		return err
	}
	if err := c.conditionSays(ctx, "VersionRefused", "feature level 2"); err != nil {
		return err
	}
	if err := c.progress(ctx, 5*someWrites); err != nil {
		return err
	}
	return c.same(ctx, before)
}

// conditionSays waits until a condition of the QuorateCluster is true, with a text.
func (c *cluster) conditionSays(ctx context.Context, kind, text string) error {
	return until(ctx, time.Minute, fmt.Sprintf("the condition %s says %q", kind, text), func() error {
		object, err := c.apply.client.Resource(quorateClusters).Namespace(c.namespace).Get(ctx, operatedName,
			metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		var all []string
		for _, one := range conditions {
			condition, _ := one.(map[string]any)
			message, _ := condition["message"].(string)
			if condition["type"] == kind && condition["status"] == "True" && strings.Contains(message, text) {
				return nil
			}
			all = append(all, fmt.Sprintf("%v: %s", condition["type"], message))
		}
		action, _, _ := unstructured.NestedString(object.Object, "status", "action")
		return fmt.Errorf("action %q; %s", action, strings.Join(all, "; "))
	})
}
