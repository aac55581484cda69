package controller

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/quorate/quorate/operator/api/v1alpha1"
	"github.com/quorate/quorate/operator/internal/members"
	"github.com/quorate/quorate/operator/internal/objects"
)

// follow keeps what does not concern members: owners and epochs of claims, labels and the budget of voters, users, and the
// continuous backup.
func (r *Clusters) follow(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	if err := r.keep(ctx, c, s); err != nil {
		return err
	}
	if err := r.epochs(ctx, s); err != nil {
		return err
	}
	if err := r.label(ctx, s); err != nil {
		return err
	}
	var failed []error // none of these keeps the others from being as the spec wants them
	if err := r.budget(ctx, c, s); err != nil {
		failed = append(failed, fmt.Errorf("the disruption budget: %w", err))
	}
	if s.observed.Cluster == nil || c.Status.ClusterID == "" {
		return errors.Join(failed...)
	}
	if err := r.users(ctx, c, s); err != nil {
		failed = append(failed, fmt.Errorf("the users: %w", err))
	}
	if err := r.backup(ctx, c, s); err != nil {
		failed = append(failed, fmt.Errorf("the backup: %w", err))
	}
	return errors.Join(failed...)
}

// users applies spec.auth whenever it, or a password, is another one than was applied last.
func (r *Clusters) users(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	if c.Spec.Auth == nil {
		return nil
	}
	root, version, err := r.password(ctx, c, c.Spec.Auth.RootPasswordSecret)
	if err != nil {
		return err
	}
	u, versions := members.Users{RootPassword: root}, []string{version}
	for _, user := range c.Spec.Auth.Users {
		one := members.User{Name: user.Name}
		if user.PasswordSecret != "" {
			if one.Password, version, err = r.password(ctx, c, user.PasswordSecret); err != nil {
				return err
			}
			versions = append(versions, version)
		}
		for _, p := range user.Prefixes {
			one.Permissions = append(one.Permissions, members.Permission{Prefix: p.Prefix, Read: p.Access != "Write",
				Write: p.Access != "Read"})
		}
		u.Users = append(u.Users, one)
	}
	applied := digest([]any{c.UID, c.Spec.Auth, versions}) // nothing of passwords: whoever reads the status could guess them
	if c.Status.UsersApplied == applied {
		return nil
	}
	if err := r.rememberRoot(ctx, c, passwordNew, root); err != nil {
		return err
	}
	if err := s.group.Users(ctx, u); err != nil {
		return err
	}
	if err := r.rememberRoot(ctx, c, passwordKey, root); err != nil {
		return err
	}
	c.Status.UsersApplied = applied
	return nil
}

// backup keeps the policy of the continuous backup, and its view. A backup that somebody began by hand is left alone while
// the spec has none.
func (r *Clusters) backup(ctx context.Context, c *v1alpha1.QuorateCluster, s *sight) error {
	view := &v1alpha1.QuorateBackup{}
	key := types.NamespacedName{Namespace: c.Namespace, Name: c.Name}
	err := r.Read.Get(ctx, key, view)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	exists := err == nil
	ours := exists && metav1.IsControlledBy(view, c)
	if c.Spec.Backup == nil {
		if c.Status.BackupApplied != "" { // else somebody began it by hand, whoever made the view
			if _, err := s.group.Backup(ctx, &members.Backup{}); err != nil {
				return err
			}
			c.Status.BackupApplied = ""
		}
		if !ours {
			return nil
		}
		return client.IgnoreNotFound(r.Delete(ctx, view))
	}
	if exists && !ours {
		return fmt.Errorf("the QuorateBackup %w", othersError(view))
	}
	if !exists {
		view = &v1alpha1.QuorateBackup{ObjectMeta: objects.Meta(c, c.Name)}
		if err := r.create(ctx, view, c); err != nil {
			return err
		}
	}
	b := c.Spec.Backup
	applied := digest(b)
	state, err := s.group.Backup(ctx, &members.Backup{Place: b.Place, Keep: b.Keep, Recipients: b.Recipients,
		BaseEvery: b.BaseEvery.Duration, Applied: applied == c.Status.BackupApplied})
	status := v1alpha1.QuorateBackupStatus{Place: b.Place}
	if err != nil {
		status.Trouble = bounded(err.Error(), 1024)
	} else {
		c.Status.BackupApplied = applied
		status = v1alpha1.QuorateBackupStatus{On: state.On, Place: state.Place, Member: state.Member,
			Trouble:            bounded(state.Trouble, 1024),
			RestorableRevision: state.RestorableRevision, RestorableTime: timeOf(state.Restorable),
			BaseTime:   timeOf(state.Base),
			ProvenTime: timeOf(state.Proven), ProvenRevision: state.ProvenRevision, Gaps: int64(state.Gaps)}
	}
	if same(view.Status, status) {
		return nil
	}
	view.Status = status
	return r.Status().Update(ctx, view)
}

// digest of a value's JSON.
func digest(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // a type without a JSON form
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	at := metav1.NewTime(t.Truncate(time.Second))
	return &at
}

// same compares statuses as the API server keeps them.
func same(a, b any) bool {
	x, err1 := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && string(x) == string(y)
}
