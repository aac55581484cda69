package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorate/quorate/test/kubelet/claims"
)

// A payload is files that the API holds, by path below the volume.
type payload map[string]content

type content struct {
	bytes string
	mode  fs.FileMode
}

// volume returns the directory of a pod's volume, with its present contents. It is called again while the pod runs, so that
// changes of secrets arrive.
func (w *worker) volume(ctx context.Context, v *corev1.Volume) (string, error) {
	own := filepath.Join(w.directory(), "volumes", v.Name)
	switch {
	case v.EmptyDir != nil:
		if err := os.MkdirAll(own, 0o777); err != nil {
			return "", err
		}
		return own, os.Chmod(own, 0o777)
	case v.HostPath != nil:
		return v.HostPath.Path, nil
	case v.PersistentVolumeClaim != nil:
		return w.claim(ctx, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		return w.claim(ctx, w.pod.Name+"-"+v.Name)
	}
	files, err := w.payload(ctx, v)
	if err != nil {
		return "", err
	}
	return own, write(own, files)
}

func (w *worker) payload(ctx context.Context, v *corev1.Volume) (payload, error) {
	files := payload{}
	switch {
	case v.ConfigMap != nil:
		return files, w.addConfigMap(ctx, files, v.ConfigMap.Name, v.ConfigMap.Optional, v.ConfigMap.Items,
			mode(v.ConfigMap.DefaultMode))
	case v.Secret != nil:
		return files, w.addSecret(ctx, files, v.Secret.SecretName, v.Secret.Optional, v.Secret.Items,
			mode(v.Secret.DefaultMode))
	case v.DownwardAPI != nil:
		return files, w.addFields(files, v.DownwardAPI.Items, mode(v.DownwardAPI.DefaultMode))
	case v.Projected == nil:
		return nil, fmt.Errorf("this kubelet does not know the kind of the volume %s", v.Name)
	}
	m := mode(v.Projected.DefaultMode)
	for _, s := range v.Projected.Sources {
		var err error
		switch {
		case s.ConfigMap != nil:
			err = w.addConfigMap(ctx, files, s.ConfigMap.Name, s.ConfigMap.Optional, s.ConfigMap.Items, m)
		case s.Secret != nil:
			err = w.addSecret(ctx, files, s.Secret.Name, s.Secret.Optional, s.Secret.Items, m)
		case s.DownwardAPI != nil:
			err = w.addFields(files, s.DownwardAPI.Items, m)
		case s.ServiceAccountToken != nil:
			err = w.addToken(ctx, files, s.ServiceAccountToken, m)
		default:
			err = fmt.Errorf("this kubelet does not know a source of the volume %s", v.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

func mode(m *int32) fs.FileMode {
	if m == nil {
		return 0o644
	}
	return fs.FileMode(*m)
}

func (w *worker) addConfigMap(ctx context.Context, to payload, name string, optional *bool, items []corev1.KeyToPath,
	m fs.FileMode) error {
	all, err := w.configMap(ctx, name, optional)
	if err != nil {
		return err
	}
	return add(to, "configmap "+name, all, items, m)
}

func (w *worker) addSecret(ctx context.Context, to payload, name string, optional *bool, items []corev1.KeyToPath,
	m fs.FileMode) error {
	all, err := w.secret(ctx, name, optional)
	if err != nil {
		return err
	}
	return add(to, "secret "+name, all, items, m)
}

func add(to payload, of string, all map[string]string, items []corev1.KeyToPath, m fs.FileMode) error {
	if items == nil {
		for key, value := range all {
			to[key] = content{value, m}
		}
		return nil
	}
	for _, item := range items {
		value, ok := all[item.Key]
		if !ok && all != nil {
			return fmt.Errorf("%s has no key %s", of, item.Key)
		}
		one := content{value, m}
		if item.Mode != nil {
			one.mode = fs.FileMode(*item.Mode)
		}
		if ok {
			to[item.Path] = one
		}
	}
	return nil
}

func (w *worker) addFields(to payload, items []corev1.DownwardAPIVolumeFile, m fs.FileMode) error {
	for _, item := range items {
		if item.FieldRef == nil {
			return errors.New("this kubelet knows only fieldRef in volumes of the downward API")
		}
		value, err := w.field(item.FieldRef.FieldPath)
		if err != nil {
			return err
		}
		to[item.Path] = content{value, m}
	}
	return nil
}

// A token is one of a service account, for a volume.
type token struct {
	value string
	renew time.Time
}

func (w *worker) addToken(ctx context.Context, to payload, source *corev1.ServiceAccountTokenProjection,
	m fs.FileMode) error {
	key := source.Audience + "/" + source.Path
	if t := w.tokens[key]; t.value == "" || time.Now().After(t.renew) {
		bound := &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: w.pod.Name, UID: w.pod.UID}
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: source.ExpirationSeconds, BoundObjectRef: bound}}
		if source.Audience != "" {
			request.Spec.Audiences = []string{source.Audience}
		}
		accounts := w.node.Client.CoreV1().ServiceAccounts(w.pod.Namespace)
		got, err := accounts.CreateToken(ctx, w.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		left := time.Until(got.Status.ExpirationTimestamp.Time)
		w.tokens[key] = token{got.Status.Token, time.Now().Add(left * 4 / 5)}
	}
	to[source.Path] = content{w.tokens[key].value, m}
	return nil
}

// write puts files into a directory as a kubelet does: through links to a directory that is exchanged at once when they
// change.
func write(directory string, files payload) error {
	const current = "..data"
	if same(filepath.Join(directory, current), files) {
		return nil
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	version, err := os.MkdirTemp(directory, "..")
	if err != nil {
		return err
	}
	if err := os.Chmod(version, 0o755); err != nil {
		return err
	}
	for path, c := range files {
		full := filepath.Join(version, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, []byte(c.bytes), c.mode); err != nil {
			return err
		}
		if err := os.Chmod(full, c.mode); err != nil {
			return err
		}
		first, _, _ := strings.Cut(path, "/")
		err := os.Symlink(filepath.Join(current, first), filepath.Join(directory, first))
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	before, _ := os.Readlink(filepath.Join(directory, current))
	fresh := filepath.Join(directory, "..fresh")
	if err := errors.Join(os.Symlink(filepath.Base(version), fresh), os.Rename(fresh, filepath.Join(directory,
		current))); err != nil {
		return err
	}
	if before != "" {
		return os.RemoveAll(filepath.Join(directory, before))
	}
	return nil
}

func same(directory string, files payload) bool {
	if _, err := os.Stat(directory); err != nil {
		return false
	}
	for path, c := range files {
		if has, err := os.ReadFile(filepath.Join(directory, path)); err != nil || string(has) != c.bytes {
			return false
		}
	}
	entries, _ := os.ReadDir(directory)
	tops := map[string]bool{}
	for path := range files {
		first, _, _ := strings.Cut(path, "/")
		tops[first] = true
	}
	return len(entries) == len(tops)
}

// claim returns the directory of a claim's volume, and tells the API of a new size.
func (w *worker) claim(ctx context.Context, name string) (string, error) {
	claim, err := w.node.Client.CoreV1().PersistentVolumeClaims(w.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if claim.Spec.VolumeName == "" || claim.Status.Phase != corev1.ClaimBound {
		return "", fmt.Errorf("the claim %s is not bound", name)
	}
	volume, err := w.node.Client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != claims.Driver {
		return "", fmt.Errorf("the volume %s is not of the driver %s", volume.Name, claims.Driver)
	}
	directory := claims.Directory(w.node.Root, volume)
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return "", err
	}
	return directory, claims.Grown(ctx, w.node.Client, claim, volume)
}

// own gives a volume to the group of the pod, as fsGroup says. The group may only read
// files that the API holds, such as those of Secrets.
func (w *worker) own(directory string, toRead bool) error {
	context := w.pod.Spec.SecurityContext
	if context == nil || context.FSGroup == nil {
		return nil
	}
	group := int(*context.FSGroup)
	return filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode().Type() == fs.ModeSymlink {
			return nil
		}
		more := fs.FileMode(0o660)
		if toRead {
			more = 0o440
		}
		if entry.IsDir() {
			more |= 0o110 | fs.ModeSetgid
		}
		return errors.Join(os.Chown(path, -1, group), os.Chmod(path, info.Mode()|more))
	})
}

// groups are those of a container beside its own.
func (w *worker) groups() []int {
	var all []int
	if context := w.pod.Spec.SecurityContext; context != nil {
		for _, g := range context.SupplementalGroups {
			all = append(all, int(g))
		}
		if context.FSGroup != nil {
			all = append(all, int(*context.FSGroup))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}
