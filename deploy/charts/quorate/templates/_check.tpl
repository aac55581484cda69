{{/* Refuses values that contradict each other, or that this chart cannot honour, with what to do instead. */}}
{{- define "quorate.check" -}}
{{- $v := .Values -}}
{{- $count := int $v.replicaCount -}}
{{- $quorum := add1 (div $count 2) -}}
{{- $running := include "quorate.running" . | fromJson -}}
{{- $faults := list -}}
{{- if contains "bitnami" $v.image.repository -}}
{{- $faults = append $faults (printf "image.repository: %s is an image of etcd; give the image of Quorate (docs/release.md)" $v.image.repository) -}}
{{- end -}}
{{- /* 1.0 refuses to start with the list of members beside --join, and has no enable-auth, member scale or backup. */}}
{{- if and (regexMatch "^v?1[.]0([.-]|$)" (toString $v.image.tag)) (not $v.image.digest) -}}
{{- $faults = append $faults (printf "image.tag: %v is of Quorate 1.0, and this chart is for 1.1 and later: the members would not start; leave the tag out, or give a later one (docs/upgrade.md has the ways back)" $v.image.tag) -}}
{{- end -}}
{{- if ne $v.podManagementPolicy "Parallel" -}}
{{- $faults = append $faults "podManagementPolicy: leave it at Parallel: the members of a new cluster wait for each other" -}}
{{- end -}}
{{- if gt (int $v.minReadySeconds) 0 -}}
{{- $faults = append $faults "minReadySeconds: leave it at 0: an update would delete all pods at once that have not been ready for so long" -}}
{{- end -}}
{{- range $when, $what := dict "whenScaled" "where the pods are scaled to 0, as a recovery does" "whenDeleted" "with the StatefulSet, which a restore and a takeover delete" -}}
{{- $policy := $v.persistentVolumeClaimRetentionPolicy -}}
{{- if and $policy.enabled (eq (index $policy $when) "Delete") (not $policy.allowLoss) -}}
{{- $faults = append $faults (printf "persistentVolumeClaimRetentionPolicy.%s: Delete would delete the disks of all members %s: write Retain, or, where nobody needs the data, also allowLoss: true. A StatefulSet that has it keeps its claims after: kubectl patch statefulset -n %s %s -p '{\"spec\":{\"persistentVolumeClaimRetentionPolicy\":{\"whenScaled\":\"Retain\",\"whenDeleted\":\"Retain\"}}}'" $when $what $.Release.Namespace (include "quorate.fullname" $)) -}}
{{- end -}}
{{- end -}}
{{- if and .Release.IsInstall (gt (int (include "quorate.founders" .)) $count) (not (kindIs "invalid" $v.founders)) -}}
{{- $faults = append $faults (printf "founders: %v members are to found the cluster, and there are to be %d: they would wait for ever" $v.founders $count) -}}
{{- end -}}
{{- $noted := dig "metadata" "annotations" "quorate.io/founders" "" $running -}}
{{- if and .Release.IsUpgrade $running (ne $v.initialClusterState "existing") -}}
{{- if and (not $noted) (kindIs "invalid" $v.founders) -}}
{{- $faults = append $faults "founders: nothing tells any more how many members founded the cluster: give the number that replicaCount was when the release was installed" -}}
{{- else if and $noted (not (kindIs "invalid" $v.founders)) (ne (int $noted) (int $v.founders)) -}}
{{- $faults = append $faults (printf "founders: %s members founded the cluster, and that stays so: write %s, or leave it out" $noted $noted) -}}
{{- end -}}
{{- end -}}
{{- range dig "spec" "volumeClaimTemplates" list $running -}}
{{- if and (eq .metadata.name "data") $v.persistence.enabled -}}
{{- $size := dig "spec" "resources" "requests" "storage" "" . -}}
{{- $class := dig "spec" "storageClassName" "" . -}}
{{- $wanted := include "quorate.storageClass" $ -}}
{{- $faulty := "%s: the StatefulSet has %s, and Kubernetes does not change it in place: docs/kubernetes-chart.md#grow-the-disks has the steps" -}}
{{- if and (include "quorate.mebibytes" $size) (include "quorate.mebibytes" $v.persistence.size) (ne (include "quorate.mebibytes" $size) (include "quorate.mebibytes" $v.persistence.size)) -}}
{{- $faults = append $faults (printf $faulty "persistence.size" $size) -}}
{{- end -}}
{{- if ne $class (ternary "" $wanted (eq $wanted "-")) -}}
{{- $faults = append $faults (printf $faulty "persistence.storageClass" (quote $class)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $side := list "client" "peer" -}}
{{- $tls := include "quorate.tls" (dict "root" $ "side" $side) | fromJson -}}
{{- if and $tls.secure (not $tls.auto) (not $tls.secret) -}}
{{- $faults = append $faults (printf "auth.%s.existingSecret: name the Secret with the certificate, or set certManager.enabled" $side) -}}
{{- end -}}
{{- if and $tls.auth (not $tls.secure) -}}
{{- $faults = append $faults (printf "auth.%s.enableAuthentication: it needs auth.%s.secureTransport" $side $side) -}}
{{- end -}}
{{- if and $tls.auth $tls.auto -}}
{{- $faults = append $faults (printf "auth.%s.useAutoTLS: certificates that nobody has signed prove nothing: drop it, or auth.%s.enableAuthentication" $side $side) -}}
{{- end -}}
{{- if and (eq $side "client") $tls.secure (not $tls.auto) (not $tls.ca) (or $v.auth.rbac.create (include "quorate.backupURL" $)) -}}
{{- $faults = append $faults "auth.client.caFilename: name the key of the Secret with the authority of its certificate, which the chart's jobs verify" -}}
{{- end -}}
{{- end -}}
{{- if and $v.auth.token.enabled (eq $v.auth.token.type "jwt") (not $v.auth.token.privateKey.existingSecret) -}}
{{- $faults = append $faults "auth.token.privateKey.existingSecret: name the Secret with the key that signs the tokens, or set auth.token.enabled: false" -}}
{{- end -}}
{{- if and (not $v.auth.rbac.create) (not $v.auth.rbac.allowNoneAuthentication) -}}
{{- $faults = append $faults "auth.rbac: without create everybody may call the cluster; say so by allowNoneAuthentication: true" -}}
{{- end -}}
{{- if $v.pdb.create -}}
{{- $min := include "quorate.share" (dict "of" $v.pdb.minAvailable "count" $count) -}}
{{- if and $min (lt (int $min) $quorum) (gt $count 1) -}}
{{- $faults = append $faults (printf "pdb.minAvailable: %v of %d members are no majority; give at least %d, or leave it empty" $v.pdb.minAvailable $count $quorum) -}}
{{- end -}}
{{- $spare := max 1 (sub $count $quorum | int) -}}
{{- $max := include "quorate.share" (dict "of" $v.pdb.maxUnavailable "count" $count) -}}
{{- if and $max (gt (int $max) $spare) -}}
{{- $faults = append $faults (printf "pdb.maxUnavailable: without %v of %d members there is no majority; give at most %d, or leave it empty" $v.pdb.maxUnavailable $count $spare) -}}
{{- end -}}
{{- end -}}
{{- $apart := include "quorate.share" (dict "of" (dig "rollingUpdate" "maxUnavailable" "" $v.updateStrategy) "count" $count) -}}
{{- if and $apart (gt (int $apart) 1) -}}
{{- $faults = append $faults (printf "updateStrategy.rollingUpdate.maxUnavailable: with %v an update may stop %s of %d members at once; leave it at 1" $v.updateStrategy.rollingUpdate.maxUnavailable $apart $count) -}}
{{- end -}}
{{- range list "serviceMonitor" "podMonitor" "prometheusRule" -}}
{{- if and (index $v.metrics .).enabled (not $v.metrics.enabled) -}}
{{- $faults = append $faults (printf "metrics.%s.enabled: it needs metrics.enabled" .) -}}
{{- end -}}
{{- end -}}
{{- if and $v.backup.enabled (not $v.backup.url) -}}
{{- $faults = append $faults "backup.url: say where the backup goes, such as s3://BUCKET/PREFIX" -}}
{{- end -}}
{{- if and $v.backup.enabled $v.backup.url (not (regexMatch "^(s3://[A-Za-z0-9]|file:///.)" $v.backup.url)) -}}
{{- $faults = append $faults (printf "backup.url: %q is no place, and no member would start with it; write s3://BUCKET/PREFIX or file:///DIRECTORY" $v.backup.url) -}}
{{- end -}}
{{- if and $v.backup.keep (not (regexMatch "^(all|[0-9]+[hdw](,(daily|weekly|monthly|yearly):[0-9]+)*)$" $v.backup.keep)) -}}
{{- $faults = append $faults (printf "backup.keep: %q is no rule; write 14d, or 48h,daily:30,weekly:12,monthly:12, or all" $v.backup.keep) -}}
{{- end -}}
{{- if or $v.restore.from $v.restore.at -}}
{{- if not (regexMatch "^(s3://[A-Za-z0-9]|file:///.)" $v.restore.from) -}}
{{- $faults = append $faults (printf "restore.from: %q is no place; write s3://BUCKET/PREFIX or file:///DIRECTORY" $v.restore.from) -}}
{{- end -}}
{{- if not (regexMatch "^entry:[1-9][0-9]*$" $v.restore.at) -}}
{{- $faults = append $faults (printf "restore.at: %q is no entry, and members that restore different states never meet; write entry:INDEX, which quorate backup verify --at TIME names" $v.restore.at) -}}
{{- end -}}
{{- if eq $v.initialClusterState "existing" -}}
{{- $faults = append $faults "restore: with initialClusterState: existing nobody founds a cluster, and only members that found one restore: set initialClusterState: \"\" for a new release, or restore: {from: \"\", at: \"\"} for one that is there" -}}
{{- else if ne $count (int (include "quorate.founders" $)) -}}
{{- $faults = append $faults "restore: only the members that found a cluster restore: take it out before their number changes: restore: {from: \"\", at: \"\"}" -}}
{{- end -}}
{{- $ready := int (dig "status" "readyReplicas" 0 $running) -}}
{{- if and .Release.IsUpgrade (ge $ready (add1 (div (int (dig "spec" "replicas" $count $running)) 2) | int)) -}}
{{- $faults = append $faults (printf "restore: %d members of this release serve, and a pod whose claim is lost would begin with the past: take it out: restore: {from: \"\", at: \"\"}" $ready) -}}
{{- end -}}
{{- if and $v.backup.enabled (eq $v.backup.url $v.restore.from) -}}
{{- $faults = append $faults "backup.url: the place that is restored from has the backup of the former cluster: give the new one a prefix of its own" -}}
{{- end -}}
{{- end -}}
{{- if and $v.backup.enabled $v.disasterRecovery.enabled -}}
{{- $faults = append $faults "disasterRecovery.enabled: it is a backup to a claim, and backup.enabled another one: enable one of them" -}}
{{- end -}}
{{- range $key, $do := dict
  "command" "set extraFlags or extraEnvVars"
  "args" "set extraFlags or extraEnvVars"
  "configuration" "set extraFlags or extraEnvVars: a file replaces all of the chart's settings"
  "existingConfigmap" "set extraFlags or extraEnvVars: a file replaces all of the chart's settings" -}}
{{- if index $v $key -}}{{- $faults = append $faults (printf "%s: it is not honoured here; %s" $key $do) -}}{{- end -}}
{{- end -}}
{{- range $key, $do := dict
  "startFromSnapshot" "docs/kubernetes-chart.md#restore-into-a-release has the steps for a file; restore.from begins with a continuous backup"
  "diagnosticMode" "the image has no shell; use kubectl debug"
  "volumePermissions" "the image has no shell; podSecurityContext.fsGroup sets the permissions" -}}
{{- if dig "enabled" false (index $v $key | default dict) -}}{{- $faults = append $faults (printf "%s.enabled: it is not honoured here: %s" $key $do) -}}{{- end -}}
{{- end -}}
{{- $containers := dig "spec" "template" "spec" "containers" list $running -}}
{{- $peer := include "quorate.tls" (dict "root" . "side" "peer") | fromJson -}}
{{- $urls := include "quorate.peerURLs" . -}}
{{- range $containers -}}
{{- range .env -}}
{{- if and (eq .name "ETCD_INITIAL_ADVERTISE_PEER_URLS") .value -}}
{{- $has := regexReplaceAll "[$][(][^)]*[)]" .value "{}" -}}
{{- if ne (index (splitList "://" $has) 0) $peer.scheme -}}
{{- $faults = append $faults (printf "auth.peer.secureTransport: members that run talk %s, and would not understand those that talk %s; install another release with it, and move the data there by a backup or a mirror" (index (splitList "://" $has) 0) $peer.scheme) -}}
{{- else if ne $has $urls -}}
{{- $faults = append $faults (printf "clusterDomain, containerPorts.peer: members that run are reached by other members at %s, and these values say %s, which no other member knows; give the values again that the release has" $has $urls) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with include "quorate.otherName" . -}}
{{- $faults = append $faults (printf "nameOverride, fullnameOverride: this release has the members %s-0 and so on, and these values call them %s-0: helm would delete %s, and found an empty cluster. Give the values again that the release has; after a takeover those of values-takeover.yaml belong to each upgrade" . (include "quorate.fullname" $) .) -}}
{{- end -}}
{{- if $faults -}}
{{- fail (printf "\n%s\n" (join "\n" $faults)) -}}
{{- end -}}
{{- end -}}
