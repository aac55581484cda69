{{/*
A job of the chart, with one command of quorate: dict "root" . "name" "auth" "hook" "post-install" "weight" 0 "args" (list …)
"insecure" false. It asks again until the cluster answers, for jobs.activeDeadlineSeconds.
*/}}
{{- define "quorate.job" -}}
{{- $root := .root -}}
{{- $client := include "quorate.tls" (dict "root" $root "side" "client") | fromJson -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ include "quorate.fullname" $root }}-{{ .name }}
  namespace: {{ $root.Release.Namespace }}
  labels:
    {{- include "quorate.labels" $root | nindent 4 }}
    app.kubernetes.io/component: job
  {{- $own := dict "helm.sh/hook" .hook "helm.sh/hook-weight" (toString .weight) "helm.sh/hook-delete-policy" "before-hook-creation,hook-succeeded" }}
  {{- with include "quorate.annotations" (dict "root" $root "own" (merge $own $root.Values.jobs.annotations)) }}{{ . | nindent 2 }}{{ end }}
spec:
  backoffLimit: 30
  activeDeadlineSeconds: {{ $root.Values.jobs.activeDeadlineSeconds }}
  template:
    metadata:
      labels:
        {{- include "quorate.labels" $root | nindent 8 }}
        app.kubernetes.io/component: job
    spec:
      # Each try has a pod, and those that failed stay, with their logs, when the time of the job is over. A pod that is running then
      # is deleted.
      restartPolicy: Never
      {{- with include "quorate.pullSecrets" $root }}{{ . | nindent 6 }}{{ end }}
      automountServiceAccountToken: false
      enableServiceLinks: false
      {{- with $root.Values.nodeSelector }}
      nodeSelector:
        {{- tpl (toYaml .) $root | nindent 8 }}
      {{- end }}
      {{- with $root.Values.tolerations }}
      tolerations:
        {{- tpl (toYaml .) $root | nindent 8 }}
      {{- end }}
      {{- with $root.Values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- if $root.Values.podSecurityContext.enabled }}
      securityContext:
        {{- omit $root.Values.podSecurityContext "enabled" | toYaml | nindent 8 }}
      {{- end }}
      containers:
        - name: quorate
          image: {{ include "quorate.image" $root }}
          imagePullPolicy: {{ $root.Values.image.pullPolicy }}
          command: [quorate]
          args:
            {{- toYaml .args | nindent 12 }}
            {{- if and $client.secure $client.auto }}
            - --insecure-skip-tls-verify
            {{- end }}
          env:
            {{- range include "quorate.commandEnv" (dict "root" $root "endpoint" (include "quorate.endpoint" $root)) | fromJsonArray }}
            - {name: {{ index . 0 }}, value: {{ index . 1 | quote }}}
            {{- end }}
            {{- if $root.Values.auth.rbac.create }}
            - {name: QUORATE_USER, value: root}
            - name: QUORATE_PASSWORD
              valueFrom: {secretKeyRef: {name: {{ include "quorate.rootSecret" $root }}, key: {{ $root.Values.auth.rbac.existingSecretPasswordKey }}}}
            {{- end }}
          {{- if $root.Values.containerSecurityContext.enabled }}
          securityContext:
            {{- omit $root.Values.containerSecurityContext "enabled" | toYaml | nindent 12 }}
          {{- end }}
          resources:
            {{- toYaml $root.Values.jobs.resources | nindent 12 }}
          {{- if and $client.secure (not $client.auto) }}
          volumeMounts:
            - {name: client-certs, mountPath: /etc/quorate/client, readOnly: true}
          {{- end }}
      {{- if and $client.secure (not $client.auto) }}
      volumes:
        - name: client-certs
          secret: {secretName: {{ $client.secret | quote }}, defaultMode: 288}
      {{- end }}
{{- end -}}
