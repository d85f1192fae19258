{{/* Certificates of mode `service`. */}}

{{- define "extender.serverSecret" -}}
{{- if eq .Values.certificates.source "existing" -}}
{{- required "certificates.existingSecret: must name a Secret with tls.crt, tls.key and ca.crt where certificates.source is existing" .Values.certificates.existingSecret -}}
{{- else -}}
{{- include "extender.fullname" . }}-tls
{{- end -}}
{{- end -}}

{{- define "extender.clientSecret" -}}
{{- include "extender.fullname" . }}-client
{{- end -}}

{{/* DNS names in the server certificate, as a JSON list. */}}
{{- define "extender.serverNames" -}}
{{- $name := include "extender.fullname" . -}}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) -}}
{{- $names = append $names (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- range .Values.certificates.extraNames }}{{- if not (regexMatch "^[0-9.]+$|:" .) }}{{- $names = append $names . }}{{- end }}{{- end -}}
{{- toJson $names -}}
{{- end -}}

{{/* IP addresses in the server certificate, as a JSON list. */}}
{{- define "extender.serverAddresses" -}}
{{- $addresses := list "127.0.0.1" -}}
{{- with .Values.service.clusterIP }}{{- $addresses = append $addresses . }}{{- end -}}
{{- range .Values.certificates.extraNames }}{{- if regexMatch "^[0-9.]+$|:" . }}{{- $addresses = append $addresses . }}{{- end }}{{- end -}}
{{- toJson $addresses -}}
{{- end -}}
