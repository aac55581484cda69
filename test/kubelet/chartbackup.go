package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	keysSecret  = "backup-keys" // whose key is a file of credentials
	keysFile    = "keys"
	pastRelease = "quorate-past"
)

// chartBackup lets a release ship, loses the node of the member that ships for a while, and installs another release that
// begins with a moment before, as docs/kubernetes-chart.md says, while the first one serves. Both ship; then the first one ends
// that.
func chartBackup(ctx context.Context, c *cluster) error {
	place, err := c.newPlace(ctx)
	if err != nil {
		return err
	}
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: keysSecret}, StringData: map[string]string{
		keysFile: "[default]\naws_access_key_id = " + placeKey + "\naws_secret_access_key = " + placeSecret + "\n"}}
	if _, err := c.plane.Client.CoreV1().Secrets(c.namespace).Create(ctx, keys, metav1.CreateOptions{}); err != nil {
		return err
	}
	c.wanted.memory = provesMemory
	ships := []string{"backup.enabled=true", "backup.url=" + place, "backup.existingSecret=" + keysSecret,
		"backup.places=" + place + "&credentials=/etc/quorate/backup/" + keysFile}
	if err := c.upgrade(ctx, ships...); err != nil {
		return err
	}
	if err := c.reaches(ctx, c.writer.newest(), true); err != nil {
		return err
	}
	before, err := c.moment(ctx)
	if err != nil {
		return err
	}
	if err := c.loseShippingPod(ctx); err != nil {
		return err
	}
	entry, err := c.entryAt(ctx, place, before.at)
	if err != nil {
		return err
	}
	past, err := c.installPast(ctx, place, entry)
	if err != nil {
		return err
	}
	if err := c.hasState(ctx, past, func(key string, _ int64) bool { return before.acked[key] > 0 }); err != nil {
		return err
	}
	if err := past.reaches(ctx, 1, false); err != nil {
		return err
	}
	if err := c.helm(ctx, "uninstall", pastRelease, "-n", c.namespace, "--wait", "--timeout", "2m"); err != nil {
		return err
	}
	if _, err := c.quorateCommand(ctx, "backup", "stop"); err != nil {
		return err
	}
	return c.upgrade(ctx)
}

// upgrade upgrades the release to values.
func (c *cluster) upgrade(ctx context.Context, values ...string) error {
	if err := c.helm(ctx, append([]string{"upgrade"}, c.chartValues(c.class, values...)...)...); err != nil {
		return err
	}
	return c.ready(ctx)
}

// shipState is what `quorate backup status -o json` says.
type shipState struct {
	On         bool   `json:"on"`
	MemberName string `json:"member_name"`
	Gaps       uint64 `json:"gaps,string"`
	Restorable struct {
		Revision int64 `json:"revision,string"`
	} `json:"restorable"`
	Proven struct {
		Revision int64 `json:"revision,string"`
	} `json:"proven"`
}

func (c *cluster) shipState(ctx context.Context) (s shipState, err error) {
	said, err := c.quorateCommand(ctx, "backup", "status", "-o", "json")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(said), &s); err != nil {
		return s, fmt.Errorf("%w: %s", err, said)
	}
	return s, nil
}

// reaches waits until the state of a revision can be restored, and where that is asked for a member has proved the backup.
func (c *cluster) reaches(ctx context.Context, revision int64, proven bool) error {
	return until(ctx, readyTime, fmt.Sprintf("revision %d can be restored", revision), func() error {
		s, err := c.shipState(ctx)
		if err == nil && (!s.On || s.Restorable.Revision < revision || s.Gaps > 0 || proven && s.Proven.Revision == 0) {
			err = fmt.Errorf("the backup is %+v", s)
		}
		return err
	})
}

// loseShippingPod switches the node of the member that ships off, until what was written meanwhile can be restored.
func (c *cluster) loseShippingPod(ctx context.Context) error {
	s, err := c.shipState(ctx)
	if err != nil {
		return err
	}
	p, err := c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, s.MemberName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	n, err := c.nodeOf(p)
	if err != nil {
		return err
	}
	n.Kill()
	if err := c.goesOnWithout(ctx, n); err != nil {
		return err
	}
	if err := c.reaches(ctx, c.writer.newest(), false); err != nil {
		return err
	}
	return errors.Join(n.Boot(), c.ready(ctx))
}

// entryAt is the entry of the state at a time, by `quorate backup verify`, which proves it.
func (c *cluster) entryAt(ctx context.Context, place, at string) (uint64, error) {
	call, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	command := exec.CommandContext(call, c.quorate, "backup", "verify", "--from", place, "--at", at, "-o", "json")
	command.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID="+placeKey, "AWS_SECRET_ACCESS_KEY="+placeSecret)
	out, err := command.Output()
	var proof struct {
		Entry uint64 `json:"entry"`
	}
	if err == nil {
		err = json.Unmarshal(out, &proof)
	}
	if err != nil || proof.Entry == 0 {
		return 0, fmt.Errorf("quorate backup verify: %w: %s", err, out)
	}
	return proof.Entry, nil
}

// installPast installs another release, which begins with the state of an entry and ships to a place of its own, and then takes
// the restore out of its values.
func (c *cluster) installPast(ctx context.Context, place string, entry uint64) (*cluster, error) {
	past := &cluster{ground: c.ground, subject: chart{users: true, release: pastRelease}, namespace: c.namespace,
		class: c.class, access: c.access, wanted: c.wanted, values: []string{"auth.rbac.existingSecret=" + c.rootSecret,
			"backup.existingSecretEnv=" + placeNeeds}}
	past.access.endpoints = []string{fmt.Sprintf("http://%s.%s.svc.cluster.local:2379", pastRelease, c.namespace)}
	own := strings.Replace(place, "/kept?", "/past?", 1)
	ships := []string{"backup.enabled=true", "backup.url=" + own}
	restores := append([]string{"restore.from=" + place, fmt.Sprintf("restore.at=entry:%d", entry)}, ships...)
	if err := c.helm(ctx, append([]string{"install"}, past.chartValues(past.class, restores...)...)...); err != nil {
		return nil, fmt.Errorf("%w%s", err, c.complaints(ctx))
	}
	if err := past.ready(ctx); err != nil {
		return nil, err
	}
	return past, past.upgrade(ctx, ships...)
}
