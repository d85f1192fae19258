{{/* Configuration files of the extender and of kube-scheduler. */}}

{{- define "extender.hasLease" -}}
{{- if ne .Values.mode "service" }}true{{ end -}}
{{- end -}}

{{- define "extender.leaderElection" -}}
leaderElect: true
resourceLock: leases
resourceName: {{ include "extender.leaseName" . | quote }}
resourceNamespace: {{ .Release.Namespace | quote }}
leaseDuration: {{ .Values.leaderElection.leaseDuration }}
renewDeadline: {{ .Values.leaderElection.renewDeadline }}
retryPeriod: {{ .Values.leaderElection.retryPeriod }}
{{- end -}}

{{/* The default profile. */}}
{{- define "extender.profile" -}}
schedulerName: {{ .Values.schedulerName | quote }}
{{- if not .Values.permissions.preemption }}
plugins:
  postFilter:
    disabled:
      - name: DefaultPreemption
{{- end }}
{{- end -}}

{{/* KubeSchedulerConfiguration of the extender or the standalone scheduler. */}}
{{- define "extender.configuration" -}}
{{- $made := dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" -}}
{{- $_ := set $made "clientConnection" (dict "qps" .Values.clientConnection.qps "burst" .Values.clientConnection.burst) -}}
{{- if eq .Values.mode "standalone" -}}
{{- $_ := set $made "leaderElection" (include "extender.leaderElection" . | fromYaml) -}}
{{- else -}}
{{- $_ := set $made "leaderElection" (dict "leaderElect" false) -}}
{{- end -}}
{{- if not .Values.scheduler.config.profiles -}}
{{- $profile := include "extender.profile" . | fromYaml -}}
{{- if eq .Values.mode "service" -}}{{- $_ := set $profile "schedulerName" "default-scheduler" -}}{{- end -}}
{{- $_ := set $made "profiles" (list $profile) -}}
{{- end -}}
{{- toYaml (mergeOverwrite $made (deepCopy .Values.scheduler.config)) -}}
{{- end -}}

{{/* The entry of kube-scheduler's `extenders`, without the fields of the connection. */}}
{{- define "extender.verbs" -}}
httpTimeout: {{ .Values.extender.httpTimeout }}
nodeCacheCapable: true
ignorable: {{ .Values.extender.ignorable }}
{{- range $verb := list "filter" "prioritize" "preempt" "bind" }}
{{- if has $verb $.Values.extender.verbs }}
{{ $verb }}Verb: {{ $verb }}
{{- end }}
{{- end }}
{{- if has "prioritize" .Values.extender.verbs }}
weight: {{ .Values.extender.weight }}
{{- end }}
{{- with .Values.extender.managedResources }}
managedResources: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* KubeSchedulerConfiguration of kube-scheduler in mode `beside`. */}}
{{- define "extender.kubeSchedulerConfiguration" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  qps: {{ .Values.clientConnection.qps }}
  burst: {{ .Values.clientConnection.burst }}
leaderElection: {{- include "extender.leaderElection" . | nindent 2 }}
enableProfiling: false
profiles:
{{- if .Values.kubeScheduler.profiles }}
{{- toYaml .Values.kubeScheduler.profiles | nindent 2 }}
{{- else }}
  - {{ include "extender.profile" . | indent 4 | trim }}
{{- end }}
extenders:
  - urlPrefix: http://127.0.0.1:{{ .Values.extender.port }}
    {{- include "extender.verbs" . | nindent 4 }}
{{- end -}}

{{- define "extender.hasModules" -}}
{{- if .Values.plugins.modules }}true{{ end -}}
{{- end -}}
