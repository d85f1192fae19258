{{/* Names and labels of objects. */}}

{{- define "extender.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Release name and chart name, or the release name alone if it contains the chart name; truncated to leave space for suffixes. */}}
{{- define "extender.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "extender.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "extender.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Cluster-scoped objects have the namespace in their name, so that releases with the same name do not collide. */}}
{{- define "extender.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "extender.fullname" .) -}}
{{- end -}}

{{- define "extender.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "extender.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "extender.leaseName" -}}
{{- default (include "extender.fullname" .) .Values.leaderElection.resourceName -}}
{{- end -}}

{{- define "extender.selectorLabels" -}}
app.kubernetes.io/name: {{ include "extender.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "extender.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/component: {{ ternary "extender" "scheduler" (eq .Values.mode "service") }}
{{ include "extender.selectorLabels" . }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of all objects. Argument: (list $ additionalAnnotations). */}}
{{- define "extender.metadata" -}}
{{- $root := index . 0 -}}
{{- $annotations := merge (dict) (index . 1) $root.Values.commonAnnotations -}}
labels: {{- include "extender.labels" $root | nindent 2 }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* registry/repository@digest, or with :tag. Argument: (list image defaultTag). */}}
{{- define "extender.image" -}}
{{- $image := index . 0 -}}
{{- $name := $image.repository -}}
{{- if $image.registry -}}{{- $name = printf "%s/%s" $image.registry $name -}}{{- end -}}
{{- if $image.digest -}}{{ $name }}@{{ $image.digest }}{{- else -}}{{ $name }}:{{ default (index . 1) $image.tag }}{{- end -}}
{{- end -}}
