package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// provesMemory is enough for a member to prove the backup.
	provesMemory = "768MiB"
	// apart keeps a moment away from what was written before and after it: members apply, and note times, a little later.
	momentApart = time.Second

	shipped = `
  backup: {place: "%s", keep: 14d, recipients: [%s]}
  env:
  - {name: AWS_ACCESS_KEY_ID, valueFrom: {secretKeyRef: {name: s3, key: AWS_ACCESS_KEY_ID}}}
  - {name: AWS_SECRET_ACCESS_KEY, valueFrom: {secretKeyRef: {name: s3, key: AWS_SECRET_ACCESS_KEY}}}
`
	restoreObject = `
apiVersion: quorate.io/v1alpha1
kind: QuorateRestore
metadata: {name: %s}
spec: {clusterName: %[1]s, like: q, from: {place: "%s", at: "%s"%s}}
`

	// A key pair of age that exists for this test.
	recipient = "age1k0xmrzmxzgge395um34hyg09a896m93tpfr5t86lzpzgn6jva4qq39psda"
	identity  = "AGE-SECRET-KEY-16M9E0DMZLPVEM5EHQ5P47HZZZRJ7ZN5D6FE83YYSJSTT6DEXYK9SQZ0LFD"
)

// A moment is a time at which nothing was being written, with what had been acknowledged.
type moment struct {
	at    string // RFC 3339
	acked map[string]int64
}

// moment holds the clients for a little while.
func (c *cluster) moment(ctx context.Context) (moment, error) {
	c.writer.hold()
	defer c.writer.resume()
	timer := time.NewTimer(momentApart)
	defer timer.Stop()
	var m moment
	for range 2 {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return m, ctx.Err()
		}
		if m.at == "" {
			m = moment{time.Now().UTC().Format(time.RFC3339Nano), c.writer.keys()}
			timer.Reset(momentApart)
		}
	}
	return m, nil
}

// newest is the newest revision that was acknowledged.
func (w *writer) newest() int64 {
	return slices.Max(append(slices.Collect(maps.Values(w.keys())), 0))
}

// operatedBackup lets a cluster ship, loses the node of the member that ships, and makes another cluster of a state after that,
// and one of a moment before, while that node stays away and the first cluster serves. Then the backup ends.
func operatedBackup(ctx context.Context, c *cluster) error {
	place, err := c.shipTo(ctx, "")
	if err != nil {
		return err
	}
	before, err := c.moment(ctx)
	if err != nil {
		return err
	}
	if err := c.proven(ctx); err != nil {
		return err
	}
	back, err := c.loseShipping(ctx)
	if err != nil {
		return err
	}
	revision := c.writer.newest()
	if err := c.restorable(ctx, revision); err != nil {
		return err
	}
	past, err := c.restoreAs(ctx, "past", place, fmt.Sprint(revision), "")
	if err != nil {
		return err
	}
	if err := c.hasState(ctx, past, func(_ string, r int64) bool { return r <= revision }); err != nil {
		return err
	}
	if err := c.forget(ctx, past); err != nil {
		return err
	}
	if past, err = c.restoreAs(ctx, "moment", place, before.at, ""); err != nil {
		return err
	}
	if err := c.hasState(ctx, past, func(key string, _ int64) bool { return before.acked[key] > 0 }); err != nil {
		return err
	}
	if err := c.forget(ctx, past); err != nil {
		return err
	}
	if err := back(); err != nil {
		return err
	}
	return c.endBackup(ctx)
}

// shipTo lets the cluster ship to a new bucket, encrypted to a recipient if there is one, and waits until a state of now can be
// restored.
func (c *cluster) shipTo(ctx context.Context, recipient string) (place string, err error) {
	if place, err = c.newPlace(ctx); err != nil {
		return "", err
	}
	more := fmt.Sprintf(shipped, place, recipient)
	// The memory first: a member that has too little for a proof tells so once, and the next try comes much later.
	for _, change := range []func(*wanted){func(w *wanted) { w.memory = provesMemory }, func(w *wanted) { w.more = more }} {
		if err := errors.Join(c.want(ctx, change), c.quiet(ctx)); err != nil {
			return "", err
		}
	}
	return place, c.restorable(ctx, c.writer.newest())
}

// restorable waits until the QuorateBackup says that the state of a revision can be restored, and that nothing is missing.
func (c *cluster) restorable(ctx context.Context, revision int64) error {
	return c.backupSays(ctx, fmt.Sprintf("revision %d can be restored", revision), func(status map[string]any) error {
		reaches, _, _ := unstructured.NestedInt64(status, "restorableRevision")
		gaps, _, _ := unstructured.NestedInt64(status, "gaps")
		if on, _, _ := unstructured.NestedBool(status, "on"); !on || reaches < revision || gaps > 0 {
			return fmt.Errorf("it says %v", status)
		}
		return nil
	})
}

// proven waits until a member has proved the backup.
func (c *cluster) proven(ctx context.Context) error {
	return c.backupSays(ctx, "a member has proved the backup", func(status map[string]any) error {
		if revision, _, _ := unstructured.NestedInt64(status, "provenRevision"); revision == 0 {
			return fmt.Errorf("it says %v", status)
		}
		return nil
	})
}

func (c *cluster) backupSays(ctx context.Context, what string, check func(status map[string]any) error) error {
	return until(ctx, readyTime, what, func() error {
		view, err := c.object(ctx, quorateBackups, operatedName)
		if err != nil {
			return err
		}
		status, _, _ := unstructured.NestedMap(view.Object, "status")
		return check(status)
	})
}

// loseShipping switches off the node of the member that ships, until back is called, and waits until writes go on without it.
func (c *cluster) loseShipping(ctx context.Context) (back func() error, err error) {
	view, err := c.object(ctx, quorateBackups, operatedName)
	if err != nil {
		return nil, err
	}
	member, _, _ := unstructured.NestedString(view.Object, "status", "member")
	p, err := c.plane.Client.CoreV1().Pods(c.namespace).Get(ctx, member, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	n, err := c.nodeOf(p)
	if err != nil {
		return nil, err
	}
	n.Kill()
	return n.Boot, c.goesOnWithout(ctx, n)
}

// restoreAs makes another cluster of a past state, and waits until it is whole. More are further fields of where it comes from.
func (c *cluster) restoreAs(ctx context.Context, name, place, at, more string) (*cluster, error) {
	past := c.pastCluster(name)
	if err := c.apply.apply(ctx, c.namespace, fmt.Sprintf(restoreObject, name, place, at, more)); err != nil {
		return nil, err
	}
	err := until(ctx, readyTime, name+" is restored", func() error {
		one, err := c.object(ctx, quorateRestores, name)
		if err != nil {
			return err
		}
		state, _, _ := unstructured.NestedString(one.Object, "status", "state")
		message, _, _ := unstructured.NestedString(one.Object, "status", "message")
		if state != "Done" {
			return fmt.Errorf("it is %s: %s%s", state, message, c.complaints(ctx))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := past.ready(ctx); err != nil {
		return nil, err
	}
	if past.access.authority == nil {
		return past, nil
	}
	return past, past.readAuthority(ctx, name+"-ca")
}

// pastCluster is the cluster that a restore of the name makes.
func (c *cluster) pastCluster(name string) *cluster {
	subject := c.subject.(operated)
	subject.name = name
	past := &cluster{ground: c.ground, subject: subject, namespace: c.namespace, class: c.class, access: c.access,
		wanted: c.wanted}
	past.access.endpoints = []string{subject.endpoint(c.namespace)}
	return past
}

// hasState fails unless a restored cluster has just those of the acknowledged writes that belong to its state, and takes
// writes, which are not in the first one.
func (c *cluster) hasState(ctx context.Context, past *cluster, belongs func(key string, revision int64) bool) error {
	pairs, err := past.access.written(ctx, writePath)
	if err != nil {
		return err
	}
	has := map[string]bool{}
	for _, pair := range pairs {
		has[string(pair.Key)] = string(pair.Value) == string(pair.Key)
	}
	missing, more, all := 0, 0, c.writer.keys()
	for key, revision := range all {
		switch {
		case belongs(key, revision) && !has[key]:
			missing++
		case !belongs(key, revision) && has[key]:
			more++
		}
	}
	if missing > 0 || more > 0 || len(pairs) == 0 {
		return fmt.Errorf("%s has %d keys; %d are missing that were acknowledged before its state, and %d are there that were "+
			"acknowledged after it, of %d", past.pluginName(), len(pairs), missing, more, len(all))
	}
	client, err := past.access.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	call, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	const only = "/only/restored"
	if _, err := client.Put(call, only, "here"); err != nil {
		return fmt.Errorf("%s takes no write: %w", past.pluginName(), err)
	}
	first, err := c.access.connect()
	if err != nil {
		return err
	}
	defer first.Close()
	answer, err := first.Get(call, only)
	if err == nil && answer.Count > 0 {
		err = errors.New("what was written to the restored cluster is in the first one")
	}
	return err
}

// forget deletes a restored cluster and its restore, and waits until its pods and claims are gone.
func (c *cluster) forget(ctx context.Context, past *cluster) error {
	name := past.pluginName()
	for _, kind := range []schema.GroupVersionResource{quorateRestores, quorateClusters} {
		err := c.apply.client.Resource(kind).Namespace(c.namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil {
			return err
		}
	}
	return until(ctx, readyTime, name+" is gone", func() error {
		named := metav1.ListOptions{LabelSelector: "quorate.io/cluster=" + name}
		claims, err := c.plane.Client.CoreV1().PersistentVolumeClaims(c.namespace).List(ctx, named)
		if err != nil {
			return err
		}
		// pods of a node that is off stay until Kubernetes is told that it is
		pods, err := past.pods(ctx)
		if err == nil && len(claims.Items)+len(pods) > 0 {
			err = fmt.Errorf("%d claims and %d pods are there", len(claims.Items), len(pods))
		}
		return err
	})
}

// endBackup takes the backup out of the spec, and waits until the view is gone and the cluster ships no more.
func (c *cluster) endBackup(ctx context.Context) error {
	if err := c.want(ctx, func(w *wanted) { w.more = "" }); err != nil {
		return err
	}
	err := until(ctx, time.Minute, "the QuorateBackup is gone", func() error {
		_, err := c.object(ctx, quorateBackups, operatedName)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		}
		return errors.New("it is there")
	})
	if err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	said, err := c.quorateCommand(ctx, "backup", "status", "-o", "json")
	if err != nil {
		return err
	}
	var status struct {
		On bool `json:"on"`
	}
	if err := json.Unmarshal([]byte(said), &status); err != nil || status.On {
		return fmt.Errorf("the cluster still ships (%v): %s", err, said)
	}
	return nil
}

// killInRestore kills the operator at each of its steps while it makes a cluster of a past state, of an encrypted backup.
func killInRestore(ctx context.Context, c *cluster) error {
	place, err := c.shipTo(ctx, recipient)
	if err != nil {
		return err
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "backup-key"}, StringData: map[string]string{
		"identity": identity + "\n"}}
	if _, err := c.plane.Client.CoreV1().Secrets(c.namespace).Create(ctx, key, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := c.progress(ctx, someWrites); err != nil {
		return err
	}
	revision := c.writer.newest()
	if err := c.restorable(ctx, revision); err != nil {
		return err
	}
	past := c.pastCluster("past")
	err = c.killWhile(ctx, fewestSteps, past.stepsOfRestore, func() error {
		_, err := c.restoreAs(ctx, past.pluginName(), place, fmt.Sprint(revision), ", identitySecret: backup-key")
		return err
	})
	if err != nil {
		return err
	}
	if past.access.authority != nil {
		if err := past.readAuthority(ctx, past.pluginName()+"-ca"); err != nil {
			return err
		}
	}
	return c.hasState(ctx, past, func(_ string, r int64) bool { return r <= revision })
}

// stepsOfRestore are the steps of the operator for a restored cluster, from the moment on at which it has made it.
func (c *cluster) stepsOfRestore(ctx context.Context) ([]string, error) {
	var all []string
	one, err := c.object(ctx, quorateRestores, c.pluginName())
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if state, _, _ := unstructured.NestedString(one.Object, "status", "state"); state != "" {
		all = append(all, "the restore is "+state)
	}
	steps, err := c.steps(ctx)
	if apierrors.IsNotFound(err) {
		return all, nil
	}
	return append(all, steps...), err
}
